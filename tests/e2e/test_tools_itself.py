"""How the suite reads kubectl. Needs no cluster."""

import kube

FB = """NAME             VERDICT   WINNER   RATIO                 J/REQ   TRIALS   AGE
rust-vs-python   Pass      rust     0.38 [0.36–0.40]              10/10    9m
other                                                             0/2      1s
"""


def test_a_table_has_cells_with_spaces_and_blank_ones() -> None:
    first, second = kube.table(FB)
    assert first["RATIO"] == "0.38 [0.36–0.40]"
    assert (first["J/REQ"], first["TRIALS"], first["AGE"]) == ("", "10/10", "9m")
    assert (second["NAME"], second["VERDICT"], second["TRIALS"]) == ("other", "", "0/2")
    assert kube.table("No resources found\n") == []
