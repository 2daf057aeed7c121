# `sudare serve` as a user without root.
#
#   docker build -t sudare .
#   docker run -p 8443:8443 -v sudare-data:/data -v ./private:/private:ro sudare
#
# The files tokens, cert.pem and key.pem of /private have to be readable by user 10001, and by nobody else:
# docs/guide/4-operating/02-administration.md says how to make them. compose.yml has every option; `docker kill --signal HUP`
# has tokens and certificate read again. Nothing here limits jobs or memory, and there is no audit: the options of
# compose.yml do that. The log is `docker logs`.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --no-install-recommends -y gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --locked --release -p sudare-cli

FROM debian:bookworm-slim
RUN useradd --no-log-init --system --uid 10001 --no-create-home --home-dir /data sudare && install -d -o sudare -m 0700 /data
COPY --from=build /source/target/release/sudare /usr/local/bin/sudare
USER 10001
VOLUME /data
EXPOSE 8443
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/sudare"]
# At an address that nobody outside the container reaches.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["/usr/local/bin/sudare", "health", "http://127.0.0.1:9443"]
CMD ["serve", "--listen", "0.0.0.0:8443", "--data", "/data", "--tokens", "/private/tokens", "--tls-cert", "/private/cert.pem", \
    "--tls-key", "/private/key.pem", "--metrics", "127.0.0.1:9443"]
