"""The steps of ../libraries_test.py with redis-py: HOST PORT TOKEN."""

import sys

import redis


def told(reply):
    """The map of a verdict, which RESP2 writes as names and values."""
    return dict(zip(reply[::2], reply[1::2]))


def refused(kind, act, *words):
    try:
        act(*words)
    except kind as error:
        return str(error)
    raise AssertionError(f"{words} was not refused")


def plain_commands(client):
    assert client.set("claim", "me", nx=True, ex=100) is True
    assert client.set("claim", "other", nx=True, ex=100) is None
    assert client.get("claim") == "me"
    assert 0 < client.ttl("claim") <= 100
    assert client.expire("claim", 1000) is True
    assert 100 < client.ttl("claim") <= 1000
    assert [client.incr("count"), client.incr("count", 5)] == [1, 6]
    assert "not an integer" in refused(redis.ResponseError, client.incr, "claim")
    assert "unknown command 'LPUSH'" in refused(redis.ResponseError, client.lpush, "list", "x")


def many_at_once(client):
    pipeline = client.pipeline(transaction=False)
    for number in range(100):
        pipeline.set(f"many:{number}", number).incr("steps")
    replies = pipeline.execute()
    assert replies == [one for number in range(100) for one in (True, number + 1)]
    assert sorted(client.scan_iter("many:*", count=7)) == sorted(f"many:{n}" for n in range(100))
    atomic = client.pipeline(transaction=True).set("a", 1).incr("a").get("a")
    assert atomic.execute() == [True, 2, "2"]


def once(client):
    assert told(client.execute_command("HX.CREATE_STREAM", "orders"))["verdict"] == "done"
    first, again = (told(client.execute_command("HX.APPEND", "orders", "tea", "ID", "o-1"))
                    for _ in range(2))
    assert (first["verdict"], first["sequence"]) == ("fresh", 1)
    assert (again["verdict"], again["sequence"]) == ("duplicate", 1)
    claim = told(client.execute_command("HX.CLAIM", "charge", "o-1", "OWNER", "me"))
    assert claim["verdict"] == "fresh"
    settled = client.execute_command("HX.SETTLE", "charge", "o-1", claim["fence"], "BODY", "paid")
    assert told(settled)["verdict"] == "done"
    again = told(client.execute_command("HX.CLAIM", "charge", "o-1", "OWNER", "other"))
    assert (again["verdict"], again["body"]) == ("duplicate", "paid")


def dedup(client):
    assert client.setnx("dedup:queue:job-123", "processing") is True
    assert client.setnx("dedup:queue:job-123", "processing") is False
    assert client.set("dedup:queue:job-123", "completed", ex=3600) is True


def main(host, port, token):
    stranger = redis.Redis(host=host, port=int(port), password="wrong")
    assert "WRONGPASS" in refused(redis.ResponseError, stranger.ping)
    client = redis.Redis(host=host, port=int(port), password=token, decode_responses=True,
                         client_name="redis-py", retry_on_error=[redis.ConnectionError])
    assert client.ping()
    plain_commands(client)
    many_at_once(client)
    once(client)
    dedup(client)
    print("restart", flush=True)
    sys.stdin.readline()
    assert client.get("dedup:queue:job-123") == "completed"
    assert 3000 < client.ttl("dedup:queue:job-123") <= 3600
    again = told(client.execute_command("HX.APPEND", "orders", "tea", "ID", "o-1"))
    assert (again["verdict"], again["sequence"]) == ("duplicate", 1)
    print("done")


main(*sys.argv[1:])
