"""What every kind of database keeps: each submission once, with its reports, and nothing of who sent it."""

import asyncio
import itertools
import shutil
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import statements
from collectors import habits, stored_reports

from ldpopt.errors import InvalidInput
from ldpopt_survey.server import Outcome, RoundState, Submission, Unavailable, database, databases, draw_invitations
from ldpopt_survey.server.app import Writer
from ldpopt_survey.server.decide import drawn_mark, spent_mark
from ldpopt_survey.server.submission import invitation_hash

DAY = "2026-01-31"
ROUNDS = itertools.count(5000)
ONE, TWO = bytes([1, 0, 0, 0] * 3), bytes([0, 0, 0, 0] * 3)


def ids(count, start=0):
    return [(start + n).to_bytes(16, "big") for n in range(count)]


def mixed(number):
    """Twenty ids whose order is not that of the numbers."""
    return bytes([100 + 7 * number % 20]) * 16


def test_a_submission_is_stored_once(location, plan):
    """An identical retry is repeated, other content under the same id a conflict, also within one batch."""
    a, b, c = ids(3)
    with database(location, plan, create=True) as store:
        first = store.write([Submission(a, ONE), Submission(b, ONE), Submission(a, ONE), Submission(b, TWO)], DAY)
        assert first == [Outcome.STORED, Outcome.STORED, Outcome.REPEATED, Outcome.CONFLICT]
        again = store.write([Submission(b, TWO), Submission(a, ONE), Submission(c, TWO)], "2026-02-01")
        assert again == [Outcome.CONFLICT, Outcome.REPEATED, Outcome.STORED]
        assert dict(store.summary().days) == {DAY: 2, "2026-02-01": 1}
    assert stored_reports(plan, location) == {a.hex(): ONE, b.hex(): ONE, c.hex(): TWO}


def test_a_large_batch_is_stored_whole(location, plan):
    """More submissions than a statement takes parameters, read back in the order of their ids in small steps."""
    batch = [Submission(one, ONE) for one in reversed(ids(1500))]
    with database(location, plan, create=True) as store:
        assert set(store.write(batch, DAY)) == {Outcome.STORED}
        assert set(store.write(batch, DAY)) == {Outcome.REPEATED}
        assert [row[0] for rows in store.rows(64) for row in rows] == ids(1500)


def test_an_invitation_is_good_for_one_submission(location, plan):
    """Without one, with a strange one or with a used one nothing is stored; a retry needs none."""
    a, b, c = ids(3)
    with database(location, plan, create=True) as store:
        assert store.write([Submission(c, ONE, b"x" * 32)], DAY) == [Outcome.UNINVITED]
        good, other = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 2)]
        assert store.state() == RoundState(closed=False, invited=True)
        batch = [Submission(a, ONE), Submission(a, ONE, b"x" * 32), Submission(a, ONE, good), Submission(b, ONE, good)]
        assert store.write(batch, DAY) == [Outcome.UNINVITED, Outcome.UNINVITED, Outcome.STORED, Outcome.UNINVITED]
        batch = [Submission(b, TWO, good), Submission(a, ONE, good), Submission(a, ONE), Submission(b, TWO, other)]
        assert store.write(batch, DAY) == [Outcome.UNINVITED, Outcome.REPEATED, Outcome.REPEATED, Outcome.STORED]
        assert (store.summary().drawn, store.summary().used, store.summary().reports) == (2, 2, 2)
    assert set(stored_reports(plan, location)) == {a.hex(), b.hex()}


def test_a_conflict_uses_no_invitation(location, plan):
    """Another submission under a stored id is refused before its invitation is looked at."""
    a, b = ids(2)
    with database(location, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 2)]
        assert store.write([Submission(a, ONE, hashes[0])], DAY) == [Outcome.STORED]
        assert store.write([Submission(a, TWO, hashes[1])], DAY) == [Outcome.CONFLICT]
        assert store.write([Submission(b, TWO, hashes[1])], DAY) == [Outcome.STORED]


def test_a_closed_round_takes_nothing_more(location, plan):
    """What is stored stays and may be repeated, the invitations are gone but for their number, and the end is final."""
    a, b = ids(2)
    with database(location, plan, create=True) as store:
        drawn = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 3)]
        store.write([Submission(a, ONE, drawn[0])], DAY)
        with database(location, plan) as other:
            other.close_round()
            other.close_round()
        assert store.write([Submission(a, ONE), Submission(a, TWO), Submission(b, ONE, drawn[1])], DAY) == [
            Outcome.REPEATED,
            Outcome.CONFLICT,
            Outcome.CLOSED,
        ]
        found = store.summary()
        assert (found.closed, found.reports, found.drawn, found.used) == (True, 1, 3, 1)
    assert stored_reports(plan, location) == {a.hex(): ONE}


def test_rounds_share_a_database_and_nothing_else(location, plan):
    """The same id in another round is another submission, and each round knows the others' plans."""
    later = habits(plan.round + 1000)
    (a,) = ids(1)
    with database(location, plan, create=True) as one, database(location, later, create=True) as two:
        assert one.write([Submission(a, ONE)], DAY) == two.write([Submission(a, TWO)], DAY) == [Outcome.STORED]
        assert plan.checksum in two.other_rounds()
        assert later.checksum not in two.other_rounds()
        one.close_round()
        assert not two.state().closed
    assert stored_reports(plan, location) == {a.hex(): ONE}
    assert stored_reports(later, location) == {a.hex(): TWO}


def test_two_writers_store_a_submission_once(location, plan):
    """Two collectors that get the same submissions in other orders, some with other content, store each id once."""
    with database(location, plan, create=True) as one, database(location, plan, create=True) as two:

        def write(store, step, codes):
            made = {}
            for start in range(0, 400, 20):
                batch = [Submission(id_, codes) for id_ in ids(20, start)][::step]
                made |= dict(zip((s.id for s in batch), store.write(batch, DAY), strict=True))
            return made

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(write, one, 1, ONE), pool.submit(write, two, -1, TWO)
            outcomes = [(first.result()[id_], second.result()[id_]) for id_ in ids(400)]
    found = stored_reports(plan, location)
    assert len(found) == 400
    for id_, pair in zip(ids(400), outcomes, strict=True):
        assert set(pair) == {Outcome.STORED, Outcome.CONFLICT}
        assert found[id_.hex()] == (ONE if pair[0] is Outcome.STORED else TWO)


def test_two_writers_share_invitations(location, plan):
    """Two collectors at which everybody uses every invitation store one submission for each."""
    with database(location, plan, create=True) as one, database(location, plan, create=True) as two:
        hashes = [invitation_hash(plan.checksum, word) for word in draw_invitations(plan, one, 100)]

        def write(store, start):
            return [store.write([Submission(i, ONE, h)], DAY)[0] for i, h in zip(ids(100, start), hashes, strict=True)]

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(write, one, 0), pool.submit(write, two, 1000)
            pairs = list(zip(first.result(), second.result(), strict=True))
        assert all(set(pair) == {Outcome.STORED, Outcome.UNINVITED} for pair in pairs)
        assert one.summary().used == one.summary().reports == 100


def test_a_database_without_the_round_is_refused(location, plan):
    """Counting or closing what was never collected says so, and makes nothing."""
    with pytest.raises(InvalidInput, match="database"), database(location, plan):
        pass
    if location.startswith("sqlite"):
        assert not Path(location.removeprefix("sqlite:///")).exists()


def test_a_full_disk_stores_nothing_and_raises(tmp_path, plan):
    """No part of a batch is stored if the disk is full; once there is space again, the store works on."""
    with database(tmp_path / "reports.db", plan, create=True) as store:
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        batch = [Submission(one, ONE) for one in ids(1000)]
        with pytest.raises(Unavailable, match="full"):
            store.write(batch, DAY)
        assert store.summary().reports == 0
        store._db.execute("PRAGMA max_page_count = 1000000")
        assert set(store.write(batch, DAY)) == {Outcome.STORED}


def test_a_file_has_no_order_of_arrival(tmp_path, plan):
    """Rows are kept in the order of random ids, days are days, and nothing links a report with an invitation."""
    path = tmp_path / "reports.db"
    with database(path, plan, create=True) as store:
        drawn = draw_invitations(plan, store, 20)
        for number, word in enumerate(drawn):
            store.write([Submission(mixed(number), ONE, invitation_hash(plan.checksum, word))], DAY)
        store.close_round()
    content = path.read_bytes()
    assert not path.with_name("reports.db-wal").exists()
    hashes = [invitation_hash(plan.checksum, word) for word in drawn]
    assert not any(mark in content for hash in hashes for mark in marks_of(hash))
    places = [content.index(id_) for id_ in sorted(map(mixed, range(20)))]
    assert places in (sorted(places), sorted(places, reverse=True))  # the order of the ids, in one page
    db = sqlite3.connect(path)
    for table in ("reports", "invitations", "spent", "recent_reports", "recent_spent"):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            db.execute(f"SELECT rowid FROM {table}")
    columns = [row[1] for row in db.execute("PRAGMA table_info(reports)")]
    db.close()
    assert columns == ["round", "id", "day", "codes"]


@pytest.mark.full
def test_a_closed_round_has_no_order_in_postgresql(postgresql, plan):
    """After the end all rows are of one transaction, in the order of their ids."""
    import psycopg

    with database(postgresql.url, plan, create=True) as store:
        for number in range(20):
            store.write([Submission(mixed(number), ONE)], DAY)
        select = "SELECT r.xmin::text, r.ctid::text, r.id FROM ldpopt.reports AS r WHERE round = %s ORDER BY r.ctid"
        with psycopg.connect(postgresql.url) as db:
            before = db.execute(select, (store._number,)).fetchall()
        store.close_round()
        with psycopg.connect(postgresql.url) as db:
            after = db.execute(select, (store._number,)).fetchall()
    assert len({row[0] for row in before}) == 20
    assert len({row[0] for row in after}) == 1
    assert [row[2] for row in after] == sorted(row[2] for row in after)


def marks_of(invitation):
    """Everything that is stored of an invitation, and what is not."""
    return invitation, drawn_mark(invitation), spent_mark(invitation)


def rows_of(location, statement):
    """The rows of a query, from outside."""
    if location.startswith("sqlite"):
        with closing(sqlite3.connect(location.removeprefix("sqlite:///"))) as db:
            return db.execute(statement.replace("ldpopt.", "")).fetchall()
    import psycopg

    with psycopg.connect(location) as db:
        return db.execute(statement).fetchall()


@pytest.fixture
def mixing(monkeypatch):
    """Five submissions with invitations are mixed, as soon as they are there."""
    monkeypatch.setattr("ldpopt_survey.server.store.MIN_MIXED_SUBMISSIONS", 5)
    monkeypatch.setattr("ldpopt_survey.server.store.SETTLE_INTERVAL_SECONDS", 0.0)


@pytest.mark.usefixtures("mixing")
def test_invitations_and_reports_are_stored_separately_from_the_start(location, plan, tmp_path):
    """While the round is open no row of an invitation changes when it is used, and no stored value is in two tables."""
    with database(location, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        system = "" if location.startswith("sqlite") else ", xmin::text, xmax::text, ctid::text"
        drawn = f"SELECT hash{system} FROM ldpopt.invitations WHERE round = {store._number} ORDER BY hash"
        before = rows_of(location, drawn)
        for number, hash in enumerate(hashes[:17]):
            assert store.write([Submission(mixed(number), ONE, hash)], DAY) == [Outcome.STORED]
        assert rows_of(location, drawn) == before
        spent, recent = (
            {mark for (mark,) in rows_of(location, f"SELECT mark FROM ldpopt.{table} WHERE round = {store._number}")}
            for table in ("spent", "recent_spent")
        )
        assert (spent, recent) == (set(map(spent_mark, hashes[:15])), set(map(spent_mark, hashes[15:17])))
        assert {row[0] for row in before} == {drawn_mark(hash) for hash in hashes}
        assert not any(hash in raw(tmp_path, "reports.db*") for hash in hashes)  # the log included


@pytest.mark.full
@pytest.mark.usefixtures("mixing")
def test_known_invitations_are_not_linked_to_mixed_reports(postgresql, plan):
    """Of 15 invitations with known texts every one may belong to any of five reports, by transaction and by place, and
    no page of the tables of recent rows holds them. The 16th waits, and is joined by its transaction.
    """
    import psycopg

    with database(postgresql.url, plan, create=True), psycopg.connect(postgresql.url) as db:
        db.execute("TRUNCATE ldpopt.recent_reports, ldpopt.recent_spent")  # of other rounds, with the same ids
    with database(postgresql.url, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        select = f"xmin::text FROM ldpopt.{{}} WHERE round = {store._number} ORDER BY ctid"
        for number, hash in enumerate(hashes[:15]):
            store.write([Submission(mixed(number), ONE, hash)], DAY)
        pages = b"".join(
            rows_of(postgresql.url, f"SELECT pg_read_binary_file(pg_relation_filepath('ldpopt.recent_{table}'))")[0][0]
            for table in ("reports", "spent", "reports_pkey", "spent_pkey")
        )
        assert not any(word in pages for word in (*map(mixed, range(15)), *map(spent_mark, hashes)))
        reports = rows_of(postgresql.url, "SELECT id, " + select.format("reports"))
        marks = dict(rows_of(postgresql.url, "SELECT mark, " + select.format("spent")))
        for number, hash in enumerate(hashes[:15]):
            together = [id_ for id_, transaction in reports if transaction == marks[spent_mark(hash)]]
            assert len(together) == 5
            assert mixed(number) in together
            assert together == sorted(together)
        store.write([Submission(mixed(15), ONE, hashes[15])], DAY)
        ((id_, transaction),) = rows_of(postgresql.url, "SELECT id, " + select.format("recent_reports"))
        assert rows_of(postgresql.url, "SELECT mark, " + select.format("recent_spent")) == [
            (spent_mark(hashes[15]), transaction)
        ]
        assert id_ == mixed(15)


@pytest.mark.full
@pytest.mark.usefixtures("mixing")
def test_no_page_reveals_which_rows_were_read(postgresql, plan):
    """PostgreSQL's first reader of a row notes in it that it was committed: that is in all rows before anybody looks
    one up, so that neither a used invitation nor what is sent again stands out.
    """
    import psycopg

    def noted(*tables):
        with psycopg.connect(postgresql.url) as db:
            db.execute("CREATE EXTENSION IF NOT EXISTS pageinspect")
            select = "SELECT t_infomask & 256 FROM heap_page_items(get_raw_page(%s, 0)) WHERE t_xmin IS NOT NULL"
            return {bit for table in tables for (bit,) in db.execute(select, (f"ldpopt.{table}",))}

    with database(postgresql.url, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        store._db.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")  # as where there are many rows
        assert noted("invitations") == {256}
        for number, hash in enumerate(hashes[:10]):
            store.write([Submission(mixed(number), ONE, hash)], DAY)
        assert noted("invitations", "reports", "spent") == {256}


@pytest.mark.parametrize("waiting", [4, 5])
def test_waiting_rows_are_mixed_without_further_submissions(location, plan, monkeypatch, waiting):
    """Five submissions within the pause between two checks are mixed after it; four wait."""
    monkeypatch.setattr("ldpopt_survey.server.store.MIN_MIXED_SUBMISSIONS", 5)
    monkeypatch.setattr("ldpopt_survey.server.app.SETTLE_INTERVAL_SECONDS", 0.05)
    with database(location, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, waiting)]

        async def collected():
            writer = Writer(store, lambda: DAY)
            writer.start()
            outcomes = [await writer.submit(Submission(mixed(n), ONE, hash)) for n, hash in enumerate(hashes)]
            while not store._is_swept:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.2)
            await writer.stop()
            return outcomes

        assert asyncio.run(collected()) == [Outcome.STORED] * waiting
        recent = f"SELECT count(*) FROM ldpopt.recent_{{}} WHERE round = {store._number}"
        for table in ("spent", "reports"):
            assert rows_of(location, recent.format(table)) == [(waiting if waiting < 5 else 0,)]
    with database(location, plan) as store:
        assert [row[0] for rows in store.rows(3) for row in rows] == sorted(map(mixed, range(waiting)))


@pytest.mark.usefixtures("mixing")
def test_a_file_shows_no_order_within_those_that_are_mixed(tmp_path, plan):
    """The log is empty after each mixing, and the cells of a batch lie in the order of ids and of marks."""
    path = tmp_path / "reports.db"
    with database(path, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        for number, hash in enumerate(hashes[:15]):
            store.write([Submission(mixed(number), ONE, hash)], DAY)
            if number % 5 == 4:
                assert path.with_name("reports.db-wal").stat().st_size == 0
                content = path.read_bytes()
                for words in (
                    map(mixed, range(number - 4, number + 1)),
                    map(spent_mark, hashes[number - 4 : number + 1]),
                ):
                    ordered = sorted(words)
                    assert all(content.count(word) == 1 for word in ordered)
                    places = [content.index(word) for word in ordered]
                    assert places in (sorted(places), sorted(places, reverse=True))


@pytest.mark.usefixtures("mixing")
def test_mixing_waits_for_nobody_and_hides_no_report_from_a_dump(location, plan):
    """A snapshot from before sees every report that was stored before it, mixed since or not; later all is swept."""
    with database(location, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        for number, hash in enumerate(hashes[:4]):
            store.write([Submission(mixed(number), ONE, hash)], DAY)
        with store._snapshot() as reader:
            store._run(reader, "SELECT count(*) FROM rounds")
            for number, hash in enumerate(hashes[4:9], 4):
                assert store.write([Submission(mixed(number), ONE, hash)], DAY) == [Outcome.STORED]
            assert not store._is_swept
            seen = store._run(reader, f"SELECT count(*) FROM {store._all('reports')} WHERE round = ?", store._number)
            assert seen == [(4,)]
            assert store.summary().reports == store.summary().used == 9
            assert store.write([Submission(mixed(9), ONE, hashes[9])], DAY) == [Outcome.STORED]
        store.write([Submission(mixed(10), ONE, hashes[10])], DAY)
        assert store._is_swept
        assert [row[0] for rows in store.rows(3) for row in rows] == sorted(map(mixed, range(11)))
        assert store.write([Submission(mixed(number), ONE) for number in range(11)], DAY) == [Outcome.REPEATED] * 11
        assert store.write([Submission(ids(1)[0], ONE, hash) for hash in hashes[:11]], DAY) == [Outcome.UNINVITED] * 11


@pytest.mark.parametrize("version", [0, 2, 4])
def test_a_file_of_another_version_is_refused(tmp_path, plan, version):
    """Its tables may mean something else: it is neither read nor changed."""
    path = tmp_path / "reports.db"
    with database(path, plan, create=True):
        pass
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE recent_spent")
        db.execute(f"PRAGMA user_version = {version}")
    for create in (False, True):
        with pytest.raises(InvalidInput, match="version 3"), database(path, plan, create=create):
            pass
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'recent_spent'").fetchone() == (0,)


def test_a_backup_of_a_file_in_use_is_restored_whole(tmp_path, plan):
    """The documented way: `.backup` while a collector writes; what was stored before is there, retries are known."""
    path, copy = tmp_path / "reports.db", tmp_path / "copy.db"
    batch = [Submission(one, ONE) for one in ids(300)]
    with database(path, plan, create=True) as store:
        store.write(batch[:200], DAY)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target, pages=1, progress=lambda *_: store.write(batch, DAY))
        expected = stored_reports(plan, path)
    with database(copy, plan, create=True) as restored:
        found = stored_reports(plan, copy)
        assert {one.id.hex() for one in batch[:200]} <= set(found) <= set(expected)
        assert set(restored.write(batch[:200], DAY)) == {Outcome.REPEATED}
        assert restored.write([Submission(ids(1, 999)[0], ONE)], DAY) == [Outcome.STORED]


@pytest.mark.full
def test_a_dump_of_a_server_is_restored_whole(postgresql, plan, tmp_path):
    """The documented way: `pg_dump` while a collector writes, and `pg_restore` into another database."""
    import psycopg

    if not shutil.which("pg_dump"):
        pytest.skip("pg_dump is not installed")
    other = postgresql.url.replace("/postgres?", f"/restored{plan.round}?")
    with psycopg.connect(postgresql.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE restored{plan.round}")
    with database(postgresql.url, plan, create=True) as store:
        store.write([Submission(one, ONE) for one in ids(200)], DAY)
        dump = ["pg_dump", "--schema", "ldpopt", "--format", "custom", "--file", str(tmp_path / "d"), postgresql.url]
        dumping = subprocess.Popen(dump)
        for start in range(200, 400, 20):
            store.write([Submission(one, ONE) for one in ids(20, start)], DAY)
        assert dumping.wait(600) == 0
    subprocess.run(["pg_restore", "--exit-on-error", "--dbname", other, str(tmp_path / "d")], check=True, timeout=600)
    with database(other, plan, create=True) as restored:
        assert {one.hex() for one in ids(200)} <= set(stored_reports(plan, other))
        assert set(restored.write([Submission(one, ONE) for one in ids(200)], DAY)) == {Outcome.REPEATED}


@pytest.mark.full
def test_asking_whether_it_is_ready_leaves_no_dead_rows(postgresql, plan):
    """A probe is flushed to the log of writes, and no table has a row more, alive or dead."""
    import psycopg

    with database(postgresql.url, plan, create=True) as store, psycopg.connect(postgresql.url, autocommit=True) as db:
        select = "SELECT ctid::text, xmin::text FROM ldpopt.rounds WHERE number = %s"
        before = db.execute(select, (store._number,)).fetchall()
        (flushed,) = db.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        assert [store.probe().closed for _ in range(50)] == [False] * 50
        assert db.execute(select, (store._number,)).fetchall() == before
        (grown,) = db.execute("SELECT pg_current_wal_flush_lsn() - %s::pg_lsn", (flushed,)).fetchone()
        assert grown >= 50 * 32


def test_a_clock_that_jumps_loses_and_doubles_nothing(location, plan):
    """Days that go back, or forward by years, are only days: each submission is stored once, retries are known."""
    days = ["2026-03-29", "2026-03-28", "1970-01-01", "2099-12-31", "2026-03-29"]
    with database(location, plan, create=True) as store:
        for day in days:
            outcomes = store.write([Submission(one, ONE) for one in ids(5)], day)
        assert set(outcomes) == {Outcome.REPEATED}
        assert dict(store.summary().days) == {days[0]: 5}


def raw(folder, name):
    """All bytes of the files of a database."""
    return b"".join(path.read_bytes() for path in folder.glob(name))


def test_a_reader_keeps_a_round_in_a_file_from_being_closed(tmp_path, plan, monkeypatch):
    """While a reader's snapshot holds the log, closing says so and fails; afterwards no hash is in any file."""
    monkeypatch.setattr("ldpopt_survey.server.databases.LOCK_WAIT_SECONDS", 0.1)
    with database(tmp_path / "reports.db", plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        reader = sqlite3.connect(tmp_path / "reports.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM invitations").fetchall()
        for number, hash in enumerate(hashes):
            store.write([Submission(mixed(number), ONE, hash)], DAY)
        for _ in range(2):
            with pytest.raises(Unavailable, match="not closed: another program reads"):
                store.close_round()
            assert any(drawn_mark(hash) in raw(tmp_path, "reports.db*") for hash in hashes)
        assert store.write([Submission(ids(1)[0], ONE, hashes[0])], DAY) == [Outcome.CLOSED]
        reader.close()
        store.close_round()
        assert not any(mark in raw(tmp_path, "reports.db*") for hash in hashes for mark in marks_of(hash))
        assert (store.summary().reports, store.summary().used) == (20, 20)


def test_samples_of_keys_are_erased_with_them(tmp_path, plan):
    """A SQLite compiled with STAT4 keeps samples of keys after ANALYZE [SQLite, The sqlite_stat4 table]."""
    with database(tmp_path / "reports.db", plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        with closing(sqlite3.connect(tmp_path / "reports.db")) as db, db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("CREATE TABLE sqlite_stat4(tbl, idx, neq, nlt, ndlt, sample)")
            rows = [("invitations", "invitations", "1", "1", "1", drawn_mark(hash)) for hash in hashes]
            db.executemany("INSERT INTO sqlite_stat4 VALUES (?, ?, ?, ?, ?, ?)", rows)
        store.close_round()
        assert not any(mark in raw(tmp_path, "reports.db*") for hash in hashes for mark in marks_of(hash))


def test_erased_words_are_searched_at_every_byte(tmp_path):
    """A word is seen at any place of a file, also across two pieces that are read, and no other word is."""
    word = bytes(range(1, 33))
    for place in (0, 1, 7, 4095, (1 << 24) - 3, (1 << 24) + 5):
        (tmp_path / "file").write_bytes(bytes(place) + word + bytes(11))
        assert databases._holds_any(tmp_path / "file", [bytes(32)[:7] + b"x" * 25, word])
    assert not databases._holds_any(tmp_path / "file", [word[::-1]])
    assert not databases._holds_any(tmp_path / "file", [])


@pytest.mark.full
def test_an_old_snapshot_keeps_nothing_of_a_closed_round(postgresql, plan):
    """A transaction that began before, as of a dump, sees no invitation after the end, and its locks are waited for."""
    import psycopg

    with database(postgresql.url, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        for number, hash in enumerate(hashes):
            store.write([Submission(mixed(number), ONE, hash)], DAY)
        with psycopg.connect(postgresql.url) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM ldpopt.rounds")  # its snapshot is of this moment
            store.close_round()
            names = "SELECT pg_relation_filepath(name::regclass) FROM unnest(%s::text[]) AS name"
            tables = [[f"ldpopt.{one}{end}" for one in ("reports", "invitations", "spent") for end in ("", "_pkey")]]
            with psycopg.connect(postgresql.url) as db:
                db.execute("CHECKPOINT")
                pages = b"".join(
                    db.execute("SELECT pg_read_binary_file(%s)", (name,)).fetchone()[0]
                    for (name,) in db.execute(names, tables).fetchall()
                )
                written = "SELECT count(DISTINCT xmin::text) FROM ldpopt.reports"
                assert db.execute(written).fetchone() == (1,)
            assert mixed(3) in pages
            assert not any(mark in pages for hash in hashes for mark in marks_of(hash))
            assert reader.execute("SELECT count(*) FROM ldpopt.invitations").fetchone() == (0,)


def pages_of(server):
    """Every byte of the files of a server's database, after a checkpoint."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute("CHECKPOINT")
        (own,) = db.execute("SELECT oid::text FROM pg_database WHERE datname = current_database()").fetchone()
    return b"".join(path.read_bytes() for path in (server.folder / "data" / "base" / own).iterdir())


KEPT_BEFORE = """
COMMENT ON TABLE ldpopt.spent IS NULL;
ALTER TABLE ldpopt.spent ALTER mark SET STATISTICS -1; ALTER TABLE ldpopt.invitations ALTER hash SET STATISTICS -1;
ANALYZE ldpopt.spent; ANALYZE ldpopt.invitations"""


@pytest.mark.full
@pytest.mark.parametrize("kept", [False, True])
def test_the_planners_statistics_keep_nothing_of_a_closed_round(postgresql, plan, kept, monkeypatch):
    """ANALYZE keeps no hash; of an older database, where it did, closing erases them from every page, or refuses."""
    import psycopg

    monkeypatch.setattr("ldpopt_survey.server.store.MIN_MIXED_SUBMISSIONS", 1)
    monkeypatch.setattr("ldpopt_survey.server.store.SETTLE_INTERVAL_SECONDS", 0.0)
    with database(postgresql.url, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 20)]
        marks = [mark for hash in hashes for mark in marks_of(hash)]
        with psycopg.connect(postgresql.url, autocommit=True) as db:
            for number, hash in enumerate(hashes):
                store.write([Submission(mixed(number), ONE, hash)], DAY)
                if number % 10 == 9:  # the second leaves dead rows of the first
                    db.execute(KEPT_BEFORE if kept else "ANALYZE ldpopt.spent; ANALYZE ldpopt.invitations")
            select = "SELECT count(*) FROM pg_stats WHERE schemaname = 'ldpopt' AND attname IN ('hash', 'mark')"
            assert db.execute(select).fetchone() == (2 * kept,)
        if kept:
            with psycopg.connect(postgresql.url) as reader:
                reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                reader.execute("SELECT count(*) FROM ldpopt.rounds")  # its snapshot holds the dead rows
                with pytest.raises(Unavailable, match="not closed: another program reads"):
                    store.close_round()
        store.close_round()
        pages = pages_of(postgresql)
        assert mixed(3) in pages
        assert not any(mark in pages for mark in marks)


@pytest.mark.full
def test_closing_an_older_database_requires_the_right_to_erase_statistics(postgresql, plan):
    """A user who is neither owner nor superuser cannot close a database with statistics, but can close a new one."""
    import psycopg

    name = f"lent{plan.round}"
    url = postgresql.url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgresql.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
        db.execute(f"CREATE ROLE {name} LOGIN; GRANT CREATE ON DATABASE {name} TO {name}")
    with database(url.replace("user=postgres", f"user={name}"), plan, create=True) as store:
        draw_invitations(plan, store, 20)
        store.close_round()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(KEPT_BEFORE)
        with pytest.raises(Unavailable, match="only the owner of the database or a superuser"):
            store.close_round()
    with database(url, plan) as store:
        store.close_round()


@pytest.mark.full
def test_a_reader_of_the_tables_keeps_a_round_from_being_closed(postgresql, plan, monkeypatch):
    """A dump that holds a table is waited for, for a limited time; then closing fails, says so, and can be repeated."""
    import psycopg

    monkeypatch.setattr("ldpopt_survey.server.postgresql._LOCK_WAIT", 1)
    with database(postgresql.url, plan, create=True) as store:
        hashes = [invitation_hash(plan.checksum, one) for one in draw_invitations(plan, store, 3)]
        with psycopg.connect(postgresql.url) as reader:
            reader.execute("SELECT count(*) FROM ldpopt.invitations")
            with pytest.raises(Unavailable, match="not closed: another program reads"):
                store.close_round()
            assert store.write([Submission(mixed(1), ONE, hashes[0])], DAY) == [Outcome.CLOSED]
        store.close_round()
        assert store.summary().drawn == 3


@pytest.mark.full
def test_a_lost_server_raises_and_recovers(postgresql, plan):
    """While the server is gone nothing is acknowledged; the same store goes on when it is back."""
    with database(postgresql.url, plan, create=True) as store:
        store.write([Submission(ids(1)[0], ONE)], DAY)
        postgresql.stop("immediate")
        try:
            for _ in range(2):
                with pytest.raises(Unavailable):
                    store.write([Submission(ids(2)[1], ONE)], DAY)
        finally:
            postgresql.start()
        assert store.write([Submission(one, ONE) for one in ids(2)], DAY) == [Outcome.REPEATED, Outcome.STORED]


@pytest.mark.parametrize("content", [b"", b"no database, but long enough to be looked at " * 50])
def test_other_files_are_refused(tmp_path, plan, content):
    """A file that is no database, or empty, is said to be so, and left as it is."""
    path = tmp_path / "reports.db"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="database"), database(path, plan):
        pass
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(tmp_path, plan):
    """Tables of another program are not added to."""
    path = tmp_path / "reports.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(InvalidInput, match="survey collect"), database(path, plan, create=True):
        pass


@pytest.mark.parametrize("location", ["postgresql://user:secret@[", "postgresql://user:secret@127.0.0.1:1/x", "x.csv"])
def test_a_wrong_location_shows_no_password(plan, location):
    """What cannot be opened is named by its kind."""
    with pytest.raises((InvalidInput, Unavailable)) as refused, database(location, plan, create=True):
        pass
    assert "secret" not in str(refused.value)


@pytest.mark.full
@pytest.mark.parametrize("kind", statements.KINDS)
def test_whatever_statement_fails_nothing_is_lost_or_doubled(tmp_path, kind):
    """Devices and owners that try again have each report stored once, each invitation used once, and a closed round."""
    rounds = (statements.Round(str(tmp_path / f"{number}.db"), habits(number)) for number in ROUNDS)
    spoilt = statements.spoil_statements(rounds, kind, some=29)
    assert sum(spoilt.values()) >= 6
