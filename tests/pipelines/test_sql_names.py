"""The tables of a query are found without Spark."""

import pytest

from mooring.pipelines.sql_names import table_names


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM a", ["a"]),
        ("select * from A as x join b y on x.i = y.i, c where x.d in (1, 2)", ["A", "b", "c"]),
        ("SELECT * FROM a LEFT OUTER JOIN (SELECT * FROM b) ON a.i = b.i", ["a", "b"]),
        ("SELECT (SELECT max(i) FROM c) FROM a WHERE i IN (SELECT i FROM b)", ["c", "a", "b"]),
        ("WITH t AS (SELECT * FROM a), u (x, y) AS (SELECT 1, 2) SELECT * FROM t, u", ["a"]),
        ("SELECT EXTRACT(YEAR FROM day), trim(BOTH ' ' FROM s) FROM a", ["a"]),
        ("SELECT * FROM a WHERE x IS DISTINCT FROM y", ["a"]),
        ("SELECT 'x FROM b', \"FROM c\" FROM a -- FROM d\n/* FROM e */", ["a"]),
        ("SELECT * FROM `odd name`", ["odd name"]),
        ("SELECT * FROM other.place.t", ["other.place.t"]),
        ("SELECT * FROM range(10), a LATERAL VIEW explode(l) AS e", ["a"]),
        ("FROM a SELECT x, y", ["a"]),
        ("SELECT f(x, y), z FROM a GROUP BY x, y ORDER BY z, w", ["a"]),
        ("SELECT * FROM a UNION ALL SELECT p, q FROM b", ["a", "b"]),
        ("SELECT * FROM (a JOIN b)", ["a", "b"]),
        ("SELECT * FROM VALUES (1, 2), (3, 4) AS t(x, y)", []),
        ("SELECT a.from FROM a", ["a"]),
    ],
)
def test_tables_of_a_query(sql, names):
    found = table_names(sql)
    assert [one.name for one in found] == names
    for one in found:
        assert sql[one.offset :].strip("`").startswith(one.name.partition(".")[0])
