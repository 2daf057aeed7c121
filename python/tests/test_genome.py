"""Private searches from Python against the plain search."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import sudare as sd

DATA = Path(__file__).parents[2] / "data" / "genome"
REGION = "20:1100000-1104000"


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> sd.genome.Panel:
    path = tmp_path_factory.mktemp("genome") / "panel.sudare"
    return sd.genome.Panel.from_vcf(DATA / "panel.vcf.gz", path, kinds="snps")


def plain(panel: sd.genome.Panel, sample: str, hap: int, region: str = REGION, eps: int = 1) -> int:
    window = panel.sites.window(region)
    symbols = panel.sites.symbols(DATA / "others.vcf.gz", sample, hap, window)
    return panel.longest(window.start, symbols, eps)[0]


def test_panel_and_sites(panel: sd.genome.Panel) -> None:
    sites = sd.genome.Sites.from_bytes(panel.sites.to_bytes())
    assert (len(sites), sites.haplotypes, sites.assembly) == (3090, 600, "GRCh37")
    assert sites.contigs == {"20": 3090}
    assert sites.policy == sd.genome.Policy()
    table = sites.table()
    assert table["pos"][0] == 1000226
    assert tuple(table[["ref", "alt"]][0]) == ("A", "T")
    assert (np.diff(table["pos"].astype(np.int64)) >= 0).all()
    assert pickle.loads(pickle.dumps(sites)).hash == panel.hash
    panel.check()
    assert "600 haplotypes" in repr(panel)
    assert "trie: least time" in sites.plan(100)
    assert panel.plan(8, batch=4096).startswith("simd")


def test_trie(panel: sd.genome.Panel, tmp_path: Path) -> None:
    sites = panel.sites
    client = sd.genome.Client(threads=2)
    server = sd.genome.Server(panel, store=tmp_path, memory="1 MB", most_queries=5, threads=2)
    for sample, hap, among in [("NA06989", 1, 1), ("NA06994", 2, 4)]:
        query = client.query(
            sites, DATA / "others.vcf.gz", sample=sample, hap=hap, region=REGION, among=among
        )
        answer = client.answer(query, server.search(query.data))
        assert answer.dtype == sd.genome.ANSWER
        assert answer["matched_sites"].tolist() == [plain(panel, sample, hap)]
        assert answer["n_sites"][0] == len(sites.window(REGION))
        assert (answer["sample"][0], answer["hap"][0], answer["chrom"][0]) == (sample, hap, "20")
        assert server.counters["choices"] == among - 1
    # Symbols from an array, and the same padded.
    start = sites.window(REGION).start
    symbols = np.zeros(12, np.uint8)
    query = client.query(sites, symbols=symbols, start=start, eps=3)
    expected = panel.longest(start, symbols, 3)[0]
    assert client.answer(query, server.search(query))["matched_sites"][0] == expected
    pad = 1 << 12
    assert client.answer(query, server.search(query, pad=pad))["matched_sites"][0] == expected
    assert server.counters["products"] + server.counters["padding"] == pad
    again = sd.genome.Client.from_secret_bytes(client.secret_bytes())
    assert again.answer(query, server.search(query))["matched_sites"][0] == expected
    with pytest.raises(sd.PlanError, match="under one key"):
        server.search(query)


def test_simd_answers_many_at_once(panel: sd.genome.Panel) -> None:
    client = sd.genome.Client("simd", sites=8, hidden=False, threads=2)
    server = sd.genome.Server(panel, threads=2)
    region = "20:1100000-1100800"
    samples, haps = ["NA06989", "NA06994", "NA07000"], [1, 2]
    query = client.query(panel.sites, DATA / "others.vcf.gz", sample=samples, hap=haps, region=region)
    with pytest.raises(sd.MissingKeyError):
        server.search(query)
    assert server.add_keys(client.evaluation_keys()) == client.key_id
    answer = client.answer(query, server.search(query))
    assert answer["matched_sites"].tolist() == [plain(panel, s, h, region) for s in samples for h in haps]


def test_refusals(panel: sd.genome.Panel, tmp_path: Path) -> None:
    sites = panel.sites
    client = sd.genome.Client()
    with pytest.raises(FileNotFoundError):
        sd.genome.Panel.open(tmp_path / "nothing")
    with pytest.raises(sd.InputError, match="not a region"):
        sd.genome.Panel.from_vcf(DATA / "panel.vcf.gz", tmp_path / "p", region="20:5-9x")
    with pytest.raises(sd.InputError):
        sd.genome.Panel.from_vcf(DATA / "panel.vcf.gz", tmp_path / "p", region="20:5-9")
    cut = tmp_path / "cut.vcf.gz"
    cut.write_bytes((DATA / "panel.vcf.gz").read_bytes()[:40_000])
    with pytest.raises(sd.FormatError, match="too early"):
        sd.genome.Panel.from_vcf(cut, tmp_path / "p")
    with pytest.raises(sd.InputError):
        client.query(sites, symbols=[0, 2, 1], start=3)
    with pytest.raises(sd.ShapeError):
        client.query(sites, symbols=[[0], [1]], start=3)
    with pytest.raises(sd.InputError):
        client.query(sites, symbols=[0, 1])
    with pytest.raises(sd.InputError, match="window"):
        client.query(sites, symbols=[0, 1], start=3089)
    with pytest.raises(sd.InputError, match="no sample"):
        client.query(sites, DATA / "others.vcf.gz", sample="ME", region=REGION)
    query = client.query(sites, symbols=[0, 1], start=3)
    answer = sd.genome.Server(panel).search(query)
    with pytest.raises(sd.KeyMismatchError):
        sd.genome.Client().answer(query, answer)
    with pytest.raises(sd.KeyMismatchError, match="another query"):
        client.answer(client.query(sites, symbols=[0, 1], start=3), answer)
    with pytest.raises(sd.FormatError):
        client.answer(query, answer[:-1])
    with pytest.raises(sd.UnsupportedError):
        pickle.dumps(client)
    assert "0" not in repr(query).split("sites=")[0]
