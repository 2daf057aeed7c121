# `sudare serve` as a user without root.
#
#   docker build -t sudare .
#   docker run -p 8443:8443 -v sudare-data:/data -v ./private:/private:ro sudare \
#       serve --listen 0.0.0.0:8443 --data /data --tokens /private/tokens \
#       --tls-cert /private/cert.pem --tls-key /private/key.pem
#
# The files of /private have to be readable by user 10001, and by nobody else.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --no-install-recommends -y gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --locked --release -p sudare-cli

FROM debian:bookworm-slim
RUN useradd --no-log-init --system --uid 10001 --create-home --home-dir /data sudare
COPY --from=build /source/target/release/sudare /usr/local/bin/sudare
USER 10001
VOLUME /data
EXPOSE 8443
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/sudare"]
CMD ["serve", "--help"]
