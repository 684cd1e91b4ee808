-- What relays know: who holds which lane of the outbox, how far each lane was sent, what waits for
-- another attempt, and what was given up. {schema} is replaced by the name of the schema.

-- Relays that live, so that each can tell its share of the lanes.
CREATE TABLE "{schema}".outbox_relay (
  owner text PRIMARY KEY,
  alive_until timestamptz NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Updated only when a lease is taken or renewed.
CREATE TABLE "{schema}".outbox_lane (
  lane integer PRIMARY KEY,
  owner text,
  fence bigint NOT NULL DEFAULT 0,
  cluster bigint,  -- whose xids the lane's progress names; NULL = not known
  lease_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 20);
INSERT INTO "{schema}".outbox_lane (lane) SELECT generate_series(0, 15);

-- How far a lane was sent: rows are added and the newest counts (highest fence, then highest n), so
-- that no transaction held open elsewhere makes finding it slower.
-- Y6: sent is every row with seq <= pos, but for those of the transactions in `pending`, which were
-- running when a row up to pos was first seen; their rows are behind `since`, where the lane stood
-- then. Of these, `draining` have finished, and their rows are sent up to late_to.
CREATE TABLE "{schema}".outbox_progress (
  lane integer NOT NULL,
  fence bigint NOT NULL,
  n bigint GENERATED ALWAYS AS IDENTITY,
  pos bigint NOT NULL,
  pending xid8[] NOT NULL,
  since bigint[] NOT NULL,  -- as many
  draining xid8[] NOT NULL,
  late_to bigint NOT NULL,
  sent bigint NOT NULL,       -- so many were accepted since the lane exists
  attempts integer NOT NULL,  -- how often what follows was taken and not settled
  -- Y8: a random number of the relay that wrote it, which knows by it that it stands where it thinks.
  -- Fences are not enough: a database that went back in time, by a restore or by a standby that lacked the
  -- latest commits, gives out the same ones again.
  mark bigint NOT NULL DEFAULT 0,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Since when fence, pos, late_to and sent are what they are: rows are also added while nothing is accepted.
  moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (lane, fence, n)
);

-- Rows that wait for another attempt, and behind them the later ones of their keys. The first of a
-- key, and every row without a key, has next_at; the others get it when they become the first.
CREATE TABLE "{schema}".outbox_retry (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane integer NOT NULL,
  part integer NOT NULL,
  seq bigint NOT NULL,
  key text,
  attempts integer NOT NULL,
  next_at timestamptz,
  taken boolean NOT NULL DEFAULT false,  -- still true at the next taking: whoever had it died
  last_error text NOT NULL,
  UNIQUE (lane, seq)
);
CREATE INDEX outbox_retry_due ON "{schema}".outbox_retry (lane, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX outbox_retry_key ON "{schema}".outbox_retry (lane, key, n);

-- The whole record, because the outbox forgets it.
CREATE TABLE "{schema}".outbox_dead (
  seq bigint PRIMARY KEY,
  id text NOT NULL,
  type text NOT NULL,
  key text,
  payload bytea NOT NULL,
  headers jsonb,
  correlation_id text,
  causation_id text,
  created_at timestamptz NOT NULL,
  attempts integer NOT NULL,
  reason text NOT NULL,
  died_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Nothing that relays call waits long for a lock: of a session that stands still with one, another session
-- of the same relay is told, and does not add itself to those that wait.
-- Renews the lanes that the relay names, as far as they are still its own, and takes free ones up
-- to its share. What it held and does not name is taken anew. Leases end by this server's clock.
CREATE FUNCTION "{schema}".relay_lease(
  relay text, kept_lanes integer[], kept_fences bigint[], span interval)
RETURNS TABLE (share integer, lane integer, fence bigint, pos bigint, pending text, since text,
  draining text, late_to bigint, sent bigint, attempts integer, mark bigint)
LANGUAGE plpgsql SET lock_timeout = '4s' SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  instant timestamptz;
  fair integer;
  numbers record;
  latest timestamptz;
BEGIN
  SELECT * INTO numbers FROM "{schema}".outbox_numbers();
  IF numbers.given < numbers.sent THEN  -- Y10
    RAISE EXCEPTION 'new events would be skipped: outbox_seq is at %, but events up to % were sent, as after a restore '
      'without sequences; SELECT "{schema}".outbox_renumber(''TIME OF THE RESTORE'') mends it',
      numbers.given, numbers.sent USING ERRCODE = 'HX012';
  END IF;
  IF EXISTS (SELECT 1 FROM pg_sequence AS s WHERE s.seqrelid = '"{schema}".outbox_seq'::regclass
             AND (s.seqcache <> 1 OR s.seqincrement <> 1)) THEN  -- O1
    RAISE EXCEPTION 'events would be skipped: sessions take numbers of outbox_seq in advance, or not one by one; '
      'ALTER SEQUENCE "{schema}".outbox_seq INCREMENT BY 1 CACHE 1 mends it, once whoever publishes has '
      'connected anew' USING ERRCODE = 'HX012';
  END IF;
  INSERT INTO "{schema}".outbox_relay AS r (owner, alive_until)
  VALUES (relay, clock_timestamp() + span)
  ON CONFLICT (owner) DO UPDATE SET alive_until = excluded.alive_until;
  PERFORM 1 FROM "{schema}".outbox_lane AS l ORDER BY l.lane FOR UPDATE;
  instant := clock_timestamp();  -- Others may have held the locks for a while.
  -- The longest that anybody may have been given. What is beyond that was written while the clock
  -- was ahead. Whoever holds such a lease and lives has time to renew it.
  latest := instant + greatest(span, interval '1 hour') + interval '1 minute';
  DELETE FROM "{schema}".outbox_relay AS r
  WHERE r.alive_until < instant - interval '1 hour' OR r.alive_until > latest;
  SELECT ceil(16.0 / count(*)) INTO fair
  FROM "{schema}".outbox_relay AS r WHERE r.alive_until > instant;
  PERFORM "{schema}".relay_settle_in();

  UPDATE "{schema}".outbox_lane AS l SET lease_until = instant + span
  FROM unnest(kept_lanes, kept_fences) AS k(lane, fence)
  WHERE l.lane = k.lane AND l.fence = k.fence AND l.owner = relay AND l.lease_until > instant;
  UPDATE "{schema}".outbox_lane AS l SET lease_until = '-infinity'
  WHERE l.owner = relay AND l.lease_until > instant AND NOT EXISTS (
    SELECT 1 FROM unnest(kept_lanes, kept_fences) AS k(lane, fence)
    WHERE k.lane = l.lane AND k.fence = l.fence);
  UPDATE "{schema}".outbox_lane AS l SET lease_until = instant + span WHERE l.lease_until > latest;
  UPDATE "{schema}".outbox_retry AS r SET next_at = instant FROM "{schema}".outbox_lane AS l
  WHERE r.lane = l.lane AND r.next_at > instant + interval '1 hour';
  UPDATE "{schema}".outbox_lane AS l
  SET owner = relay, fence = l.fence + 1, lease_until = instant + span
  WHERE l.lane IN (
    SELECT f.lane FROM "{schema}".outbox_lane AS f WHERE f.lease_until <= instant ORDER BY f.lane
    LIMIT greatest(fair - (SELECT count(*) FROM "{schema}".outbox_lane AS m
                           WHERE m.owner = relay AND m.lease_until > instant), 0));

  RETURN QUERY
    SELECT fair, l.lane::integer, l.fence, coalesce(p.pos, 0), coalesce(p.pending::text, '{}'),
           coalesce(p.since::text, '{}'), coalesce(p.draining::text, '{}'),
           coalesce(p.late_to, 0), coalesce(p.sent, 0), coalesce(p.attempts, 0),
           coalesce(p.mark, 0)
    FROM "{schema}".outbox_lane AS l
    LEFT JOIN LATERAL (SELECT * FROM "{schema}".outbox_progress AS q WHERE q.lane = l.lane
                       ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p ON true
    WHERE l.owner = relay AND l.lease_until > instant
    UNION ALL SELECT fair, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL;
END $$;

-- Y9: after a restore into another cluster the xids in `pending` are those of the old one, and the new
-- one gives out the same numbers to others. But whoever ran there has ended: what it committed was
-- restored with the rest, up to pos. So they are drained, but for those that run here: nobody knows whether
-- such a number was noted before the move or since, and one that was noted since must not be given up before
-- it ends. Where the cluster may not be asked for its name, it is still told by xids that were stored and
-- are not below the xmax of who sees them. The caller has locked the lanes.
CREATE FUNCTION "{schema}".relay_settle_in() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  here bigint;
BEGIN
  BEGIN
    SELECT c.system_identifier INTO here FROM pg_control_system() AS c;
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
    here := NULL;
  END;
  INSERT INTO "{schema}".outbox_progress
    (lane, fence, pos, pending, since, draining, late_to, sent, attempts, moved_at)
  SELECT p.lane, p.fence, p.pos, p.pending, p.since, e.ended,
         (SELECT min(s.since) FROM unnest(p.since) AS s(since)), p.sent, p.attempts, p.moved_at
  FROM "{schema}".outbox_lane AS l,
    LATERAL (SELECT * FROM "{schema}".outbox_progress AS q WHERE q.lane = l.lane
             ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p,
    LATERAL (SELECT coalesce(array_agg(x.xid), '{}') AS ended,
                    coalesce(bool_or(x.xid >= pg_snapshot_xmax(pg_current_snapshot())), false) AS foreign_ones
             FROM unnest(p.pending) AS x(xid)
             WHERE pg_visible_in_snapshot(x.xid, pg_current_snapshot())
                OR x.xid >= pg_snapshot_xmax(pg_current_snapshot())) AS e
  WHERE e.ended <> '{}' AND (l.cluster <> here OR (p.draining <> e.ended AND e.foreign_ones));
  UPDATE "{schema}".outbox_lane AS l SET cluster = here
  WHERE here IS NOT NULL AND l.cluster IS DISTINCT FROM here;
END $$;

CREATE FUNCTION "{schema}".relay_release(
  relay text, lanes integer[], fences bigint[], leaves boolean)
RETURNS void LANGUAGE plpgsql SET lock_timeout = '4s' SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE "{schema}".outbox_lane AS l SET lease_until = '-infinity'
  FROM unnest(lanes, fences) AS k(lane, fence)
  WHERE l.lane = k.lane AND l.fence = k.fence AND l.owner = relay;
  IF leaves THEN
    DELETE FROM "{schema}".outbox_relay AS r WHERE r.owner = relay;
  END IF;
END $$;

-- A relay that is about to sleep: whoever publishes from now on notifies. Apart from taking,
-- because it takes an xid.
CREATE FUNCTION "{schema}".relay_announce(span_ms bigint) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT setval('"{schema}".outbox_listening'::regclass,
    greatest(last_value, ceil(date_part('epoch', clock_timestamp())
                              + span_ms::double precision / 1000::double precision)::bigint))
  FROM "{schema}".outbox_listening
$$;
-- The only relay has so much to do that it does not sleep.
CREATE FUNCTION "{schema}".relay_renounce() RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT setval('"{schema}".outbox_listening'::regclass, 0::bigint)
$$;

-- The next records of lanes: due retries, rows of transactions that finished late, and new rows.
-- All in one statement, which has one snapshot; it comes back in the first row, with this
-- transaction's xid: every transaction that was running then is in the snapshot's list, or not
-- below its xmax and below this xid, which is given out after the snapshot was made.
-- Nothing may have taken an xid in this transaction before.
-- Late rows are looked for along the seqs, from where their transactions can have begun to publish,
-- `span` numbers at a time. An index by xid would find them at once, and cost each event a twentieth
-- of its transaction.
-- Of a lane and a kind payloads come up to `bytes`, or one that has more: `before` is how much those have
-- that come before. (The length of a payload is known without reading it.)
-- Commits of relays need no flush: what a crash of the server takes back is sent again, by its id.
CREATE FUNCTION "{schema}".relay_take(
  lanes integer[], fences bigint[], positions bigint[], pendings text[], sinces text[],
  drainings text[], late_tos bigint[], sents bigint[], seen bigint[], mark bigint,
  tries integer[], most integer[], span bigint, bytes bigint)
RETURNS TABLE (kind text, lane text, n text, seq text, part text, attempt text, blocked text,
  id text, type text, key text, payload bytea, headers text, correlation_id text, causation_id text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
SET work_mem = '64MB' SET jit = off SET lock_timeout = '4s'
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH wanted AS MATERIALIZED (
    SELECT w.lane::integer AS lane, w.fence, w.pos, w.pending::xid8[] AS pending,
           w.since::bigint[] AS since, w.draining::xid8[] AS draining, w.late_to, w.sent, w.tries,
           w.most,
           CASE WHEN (q.fence, q.pos, q.late_to, q.sent) = (w.fence, w.pos, w.late_to, w.sent)
                THEN q.moved_at ELSE clock_timestamp() END AS moved_at,
           EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                   WHERE r.lane = w.lane::integer) AS has_retries,
           EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r WHERE r.lane = w.lane::integer
                   AND r.next_at <= clock_timestamp() AND r.taken) AS alone
    FROM unnest(lanes, fences, positions, pendings, sinces, drainings, late_tos, sents, seen, tries,
                most)
      AS w(lane, fence, pos, pending, since, draining, late_to, sent, mark, tries, most)
    JOIN "{schema}".outbox_lane AS l ON l.lane = w.lane::integer AND l.fence = w.fence
    LEFT JOIN LATERAL (SELECT * FROM "{schema}".outbox_progress AS p WHERE p.lane = w.lane::integer
                       ORDER BY p.fence DESC, p.n DESC LIMIT 1) AS q ON true
    WHERE coalesce(q.mark, 0) = w.mark  -- Y8
  ), finished AS MATERIALIZED (  -- Y6: a lane drains one set to the end before it begins another.
    SELECT w.lane, x.xid, x.since
    FROM wanted AS w, LATERAL unnest(w.pending, w.since) AS x(xid, since)
    WHERE w.draining = '{}' AND NOT w.alone
      AND pg_visible_in_snapshot(x.xid, pg_current_snapshot())
  ), hunted AS MATERIALIZED (  -- Whose rows may be late, and where they are looked for.
    SELECT w.lane, w.most, w.has_retries, h.xids, h.low, least(w.pos, h.low + span) AS high
    FROM wanted AS w, LATERAL (
      SELECT array_agg(f.xid) AS xids, min(f.since) AS low FROM finished AS f
      WHERE f.lane = w.lane HAVING count(*) > 0
      UNION ALL SELECT w.draining, w.late_to WHERE w.draining <> '{}' AND NOT w.alone) AS h
  ), heads AS MATERIALIZED (
    SELECT w.lane, w.most, h.* FROM wanted AS w,
      LATERAL (SELECT q.n AS head, q.next_at AS due, q.n, q.part, q.seq, q.key, q.attempts
               FROM "{schema}".outbox_retry AS q
               WHERE q.lane = w.lane AND q.next_at <= clock_timestamp() AND (q.taken OR NOT w.alone)
               ORDER BY q.next_at LIMIT CASE WHEN w.alone THEN 1 ELSE 50 END) AS h
    WHERE w.has_retries
  ), behind AS MATERIALIZED (  -- Y1: nothing is known against what only waited behind another.
    SELECT h.lane, h.most, h.head, h.due, b.n, b.part, b.seq, b.key, b.attempts FROM heads AS h,
      LATERAL (SELECT f.*, bool_and(f.attempts = 0 AND NOT f.taken) OVER (ORDER BY f.n) AS untried
               FROM (SELECT * FROM "{schema}".outbox_retry AS q
                     WHERE q.lane = h.lane AND q.key = h.key AND q.n > h.head
                     ORDER BY q.n LIMIT h.most) AS f) AS b
    WHERE h.attempts = 0 AND b.untried
  ), again AS MATERIALIZED (
    SELECT r.*, r.attempts + 1 AS attempt FROM (
      SELECT c.*, sum(s.size) OVER (PARTITION BY c.lane ORDER BY c.place ROWS UNBOUNDED PRECEDING)
                  - s.size AS before
      FROM (SELECT u.*, row_number() OVER (PARTITION BY u.lane ORDER BY u.due, u.head, u.n) AS place
            FROM (SELECT * FROM heads UNION ALL SELECT * FROM behind) AS u) AS c,
        LATERAL (SELECT coalesce(max(octet_length(o.payload)), 0) AS size FROM "{schema}".outbox AS o
                 WHERE o.lane = c.lane AND o.seq = c.seq AND o.part = c.part) AS s
      WHERE c.place <= greatest(c.most, 50)) AS r
    WHERE r.before < bytes
  ), touched AS (
    UPDATE "{schema}".outbox_retry AS r SET attempts = h.attempt, taken = true
    FROM again AS h WHERE r.n = h.n
  ), found AS MATERIALIZED (
    SELECT h.lane, d.part, d.seq, h.has_retries,
           sum(d.size) OVER (PARTITION BY h.lane ORDER BY d.seq ROWS UNBOUNDED PRECEDING) - d.size
             AS before
    FROM hunted AS h,
      LATERAL (SELECT o.part, o.seq, octet_length(o.payload) AS size FROM "{schema}".outbox AS o
               WHERE o.lane = h.lane AND o.seq > h.low AND o.seq <= h.high
                 AND o.xid = ANY (h.xids) ORDER BY o.seq LIMIT h.most) AS d
  ), late AS MATERIALIZED (
    SELECT f.* FROM found AS f WHERE f.before < bytes
  ), fresh AS MATERIALIZED (
    SELECT w.lane AS of_lane, w.tries, w.has_retries, f.* FROM wanted AS w,
      LATERAL (SELECT r.*, sum(octet_length(r.payload)) OVER (ORDER BY r.seq ROWS UNBOUNDED PRECEDING)
                           - octet_length(r.payload) AS before
               FROM (SELECT * FROM "{schema}".outbox AS o WHERE o.lane = w.lane AND o.seq > w.pos
                     ORDER BY o.seq LIMIT w.most) AS r) AS f
    WHERE NOT w.alone AND w.draining = '{}' AND f.before < bytes
  ), noted AS (
    INSERT INTO "{schema}".outbox_progress
      (lane, fence, pos, pending, since, draining, late_to, sent, attempts, mark, moved_at)
    SELECT w.lane, w.fence, w.pos, w.pending, w.since, w.draining, w.late_to, w.sent, w.tries + 1,
           relay_take.mark, w.moved_at
    FROM wanted AS w
    WHERE EXISTS (SELECT 1 FROM fresh AS f WHERE f.of_lane = w.lane)
       OR EXISTS (SELECT 1 FROM late AS t WHERE t.lane = w.lane)
  )
  SELECT 'snapshot', NULL,
         (SELECT ceil(date_part('epoch', min(r.next_at) - clock_timestamp()) * 1000)::bigint::text
          FROM wanted AS w JOIN "{schema}".outbox_retry AS r ON r.lane = w.lane
          WHERE w.has_retries AND r.next_at IS NOT NULL),
         CASE WHEN EXISTS (SELECT 1 FROM fresh) THEN pg_current_xact_id()::text END,
         NULL, NULL, NULL, pg_current_snapshot()::text, NULL, NULL, NULL::bytea, NULL, NULL, NULL
  UNION ALL
  SELECT 'lane', w.lane::text, NULL,
         (SELECT coalesce((SELECT max(t.seq) FROM late AS t WHERE t.lane = w.lane AND EXISTS (
                             SELECT 1 FROM found AS f WHERE f.lane = w.lane AND f.before >= bytes)),
                          h.high)::text FROM hunted AS h WHERE h.lane = w.lane),
         NULL, NULL, NULL,
         (SELECT array_agg(f.xid)::text FROM finished AS f WHERE f.lane = w.lane),
         NULL, NULL, NULL::bytea, NULL, NULL, NULL FROM wanted AS w
  UNION ALL
  (SELECT 'retry', h.lane::text, h.n::text, h.seq::text, h.part::text, h.attempt::text, 'f', o.id,
          o.type, h.key, o.payload, "{schema}".relay_headers(o.headers), o.correlation_id,
          o.causation_id
   FROM again AS h  -- Without an id if somebody has deleted it from the outbox.
        LEFT JOIN "{schema}".outbox AS o ON o.lane = h.lane AND o.seq = h.seq AND o.part = h.part
   ORDER BY h.lane, h.place)
  UNION ALL
  SELECT 'late', t.lane::text, NULL, o.seq::text, o.part::text, '1',
         (t.has_retries AND EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                                    WHERE r.lane = t.lane AND r.key = o.key))::text,
         o.id, o.type, o.key, o.payload, "{schema}".relay_headers(o.headers), o.correlation_id,
         o.causation_id
  FROM late AS t
       JOIN "{schema}".outbox AS o ON o.lane = t.lane AND o.seq = t.seq AND o.part = t.part
  UNION ALL
  SELECT 'fresh', o.of_lane::text, NULL, o.seq::text, o.part::text, (o.tries + 1)::text,
         (o.has_retries AND EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                                    WHERE r.lane = o.of_lane AND r.key = o.key))::text,
         o.id, o.type, o.key, o.payload,
         CASE WHEN o.headers IS NOT NULL THEN "{schema}".relay_headers(o.headers) END,
         o.correlation_id, o.causation_id
  FROM fresh AS o;
END $$;

-- O4: of these transactions, those that run and have not published: whoever publishes locks the outbox
-- before it takes a number, until it ends. Their rows will have numbers above all that were given
-- out before this was asked. (The list of locks tells the xids after the tables, so that one which
-- ended in between is not taken for one that holds nothing.)
CREATE FUNCTION "{schema}".relay_bystanders(xids text) RETURNS text LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  WITH held AS MATERIALIZED (SELECT * FROM pg_locks AS l WHERE l.granted), publishing AS (
    SELECT h.virtualtransaction FROM held AS h
    WHERE h.locktype = 'relation' AND h.mode <> 'AccessShareLock'
      AND h.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND (h.relation = '"{schema}".outbox'::regclass OR h.relation IN (
        SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = '"{schema}".outbox'::regclass)))
  SELECT coalesce(array_agg(x.xid)::text, '{}') FROM unnest(xids::xid8[]) AS x(xid)
  JOIN held AS t ON t.locktype = 'transactionid' AND t.mode = 'ExclusiveLock'
                AND t.transactionid = x.xid::xid
  WHERE t.virtualtransaction NOT IN (SELECT p.virtualtransaction FROM publishing AS p)
$$;

-- [["name", "value"], …] as netstrings: 4:name5:value. Of anything else '!': who inserts into the outbox
-- itself may store it, and one row must not hold up the others.
CREATE FUNCTION "{schema}".relay_headers(headers jsonb) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT CASE WHEN "{schema}".headers_are_pairs(headers) THEN (
    SELECT string_agg(octet_length(h ->> 0)::text || ':' || (h ->> 0)
                      || octet_length(h ->> 1)::text || ':' || (h ->> 1), '' ORDER BY i)
    FROM jsonb_array_elements(headers) WITH ORDINALITY AS e(h, i)) ELSE '!' END
$$;

-- What became of the records of lanes. The arrays up to `sents` are where the lanes stand now, `seen` are
-- the marks of what the relay stored before, `mark` is that of what is stored now. The outcomes are
-- those that are not simply "accepted and new": accepted, retry, dead, held, back (not sent).
-- Answers the lanes that are no longer the relay's; nothing happened for these.
CREATE FUNCTION "{schema}".relay_settle(
  lanes integer[], fences bigint[], positions bigint[], pendings text[], sinces text[],
  drainings text[], late_tos bigint[], sents bigint[], seen bigint[], mark bigint,
  of_lanes integer[], kinds text[], ns bigint[], parts integer[], seqs bigint[], keys text[],
  tries integer[], after_ms bigint[], reasons text[])
RETURNS TABLE (lost integer) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET lock_timeout = '4s'
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  gone integer[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  -- Y3: the lock keeps others from taking the lanes until this is done.
  PERFORM 1 FROM "{schema}".outbox_lane AS l WHERE l.lane = ANY (lanes) ORDER BY l.lane
  FOR NO KEY UPDATE;
  SELECT coalesce(array_agg(w.lane), '{}') INTO gone
  FROM unnest(lanes, fences, seen) AS w(lane, fence, mark)
  WHERE NOT EXISTS (SELECT 1 FROM "{schema}".outbox_lane AS l
                    WHERE l.lane = w.lane AND l.fence = w.fence)
     OR coalesce((SELECT q.mark FROM "{schema}".outbox_progress AS q WHERE q.lane = w.lane
                    ORDER BY q.fence DESC, q.n DESC LIMIT 1), 0) <> w.mark;  -- Y8

  INSERT INTO "{schema}".outbox_progress
    (lane, fence, pos, pending, since, draining, late_to, sent, attempts, mark, moved_at)
  SELECT w.lane, w.fence, w.pos, w.pending::xid8[], w.since::bigint[], w.draining::xid8[],
         w.late_to, w.sent, 0, relay_settle.mark,
         CASE WHEN (q.fence, q.pos, q.late_to, q.sent) = (w.fence, w.pos, w.late_to, w.sent)
              THEN q.moved_at ELSE clock_timestamp() END
  FROM unnest(lanes, fences, positions, pendings, sinces, drainings, late_tos, sents)
    AS w(lane, fence, pos, pending, since, draining, late_to, sent)
    LEFT JOIN LATERAL (SELECT * FROM "{schema}".outbox_progress AS p WHERE p.lane = w.lane
                       ORDER BY p.fence DESC, p.n DESC LIMIT 1) AS q ON true
  WHERE w.lane <> ALL (gone);
  IF random() < 0.02 THEN
    DELETE FROM "{schema}".outbox_progress AS p
    USING (SELECT q.lane, max(q.n) AS n FROM "{schema}".outbox_progress AS q GROUP BY q.lane) AS m,
      unnest(lanes) AS w(lane)
    WHERE p.lane = w.lane AND m.lane = w.lane AND p.n < m.n AND w.lane <> ALL (gone);
  END IF;
  IF cardinality(of_lanes) > 0 THEN
    PERFORM "{schema}".relay_settle_rest(
      gone, of_lanes, kinds, ns, parts, seqs, keys, tries, after_ms, reasons);
  END IF;
  RETURN QUERY SELECT unnest(gone);
END $$;

CREATE FUNCTION "{schema}".relay_settle_rest(
  gone integer[], of_lanes integer[], kinds text[], ns bigint[], parts integer[], seqs bigint[],
  keys text[], tries integer[], after_ms bigint[], reasons text[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  o record;
BEGIN
  FOR o IN SELECT * FROM unnest(of_lanes, kinds, ns, parts, seqs, keys, tries, after_ms, reasons)
      WITH ORDINALITY AS u(lane, kind, n, part, seq, key, tries, after_ms, reason, i)
      WHERE u.lane <> ALL (gone) ORDER BY u.i LOOP
    IF o.kind = 'dead' THEN
      INSERT INTO "{schema}".outbox_dead (seq, id, type, key, payload, headers, correlation_id,
                                          causation_id, created_at, attempts, reason)
      SELECT r.seq, r.id, r.type, r.key, r.payload, r.headers, r.correlation_id, r.causation_id,
             r.created_at, o.tries, o.reason
      FROM "{schema}".outbox AS r
      WHERE r.lane = o.lane AND r.seq = o.seq AND r.part = o.part
      ON CONFLICT DO NOTHING;
    END IF;
    IF o.n IS NULL AND o.kind IN ('retry', 'held') THEN
      INSERT INTO "{schema}".outbox_retry (lane, part, seq, key, attempts, next_at, last_error)
      SELECT o.lane, o.part, o.seq, o.key, CASE WHEN o.kind = 'held' THEN 0 ELSE o.tries END,
        CASE WHEN o.key IS NULL OR NOT EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                                               WHERE r.lane = o.lane AND r.key = o.key)
             THEN clock_timestamp() + o.after_ms * interval '1 millisecond' END, o.reason
      ON CONFLICT (lane, seq) DO NOTHING;
    ELSIF o.n IS NOT NULL AND o.kind IN ('accepted', 'dead') THEN
      DELETE FROM "{schema}".outbox_retry AS r WHERE r.n = o.n;
    ELSIF o.n IS NOT NULL AND o.kind = 'retry' THEN
      UPDATE "{schema}".outbox_retry AS r
      SET taken = false, last_error = o.reason,
          next_at = clock_timestamp() + o.after_ms * interval '1 millisecond'
      WHERE r.n = o.n;
    ELSIF o.n IS NOT NULL AND o.kind IN ('back', 'held') THEN  -- Y4: not sent, so no attempt.
      UPDATE "{schema}".outbox_retry AS r SET taken = false, attempts = r.attempts - 1
      WHERE r.n = o.n;
    END IF;
  END LOOP;
  -- Who is now the first of its key gets its turn; also if somebody has deleted the one before it.
  UPDATE "{schema}".outbox_retry AS r SET next_at = clock_timestamp()
  FROM (SELECT DISTINCT u.lane, u.key FROM unnest(of_lanes, keys) AS u(lane, key)
        WHERE u.key IS NOT NULL AND u.lane <> ALL (gone)) AS k,
    LATERAL (SELECT b.n FROM "{schema}".outbox_retry AS b
             WHERE b.lane = k.lane AND b.key = k.key ORDER BY b.n LIMIT 1) AS f
  WHERE r.n = f.n AND r.next_at IS NULL;
END $$;

-- Publishes dead letters anew, under their ids and in the order of their numbers; NULL = all. One that
-- was inserted without publish() and may not be published as it is stays, and keeps back no other.
-- Answers a row for each of these, and one with how many were published.
CREATE FUNCTION "{schema}".relay_redrive(ids text[])
RETURNS TABLE (redriven bigint, id text, refused text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  letter "{schema}".outbox_dead;
  published bigint := 0;
BEGIN
  FOR letter IN SELECT * FROM "{schema}".outbox_dead AS d
      WHERE ids IS NULL OR d.id = ANY (ids) ORDER BY d.seq FOR UPDATE LOOP
    BEGIN  -- It writes nothing, so that a subtransaction for each takes no xid.
      PERFORM "{schema}".publish_check(
        letter.type, letter.payload, letter.key, letter.id, letter.headers);
    EXCEPTION WHEN SQLSTATE 'HX002' THEN
      RETURN QUERY SELECT NULL::bigint, letter.id, SQLERRM;
      CONTINUE;
    END;
    PERFORM "{schema}".publish(letter.type, letter.payload, letter.key, letter.id, letter.headers,
                               letter.correlation_id, letter.causation_id);
    DELETE FROM "{schema}".outbox_dead AS d WHERE d.seq = letter.seq;
    published := published + 1;
  END LOOP;
  RETURN QUERY SELECT published, NULL::text, NULL::text;
END $$;

-- Empties one partition whose rows are all older than the retention and sent, if there is one;
-- answers how many were emptied. One at a time, however many ask. Inserts go to other partitions;
-- whoever reads waits for the moment that it takes. With the rights of the owner: a relay's role need not
-- be allowed to empty tables.
CREATE FUNCTION "{schema}".relay_clean() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p integer;
  emptied boolean;
BEGIN
  -- A snapshot of the whole transaction would not show what was committed while it waited for the lock.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'relay_clean() must see what others have just committed'
      USING ERRCODE = 'HX003', HINT = 'Call it in a transaction of level READ COMMITTED.';
  END IF;
  IF NOT pg_try_advisory_xact_lock(1214345336, -2) THEN
    RETURN 0;
  END IF;
  FOR p IN 0..31 LOOP
    CONTINUE WHEN p = "{schema}".outbox_part() OR NOT "{schema}".relay_is_old(p);
    BEGIN
      PERFORM set_config('lock_timeout', '100ms', true);
      EXECUTE format('LOCK TABLE "{schema}".outbox_p%s IN ACCESS EXCLUSIVE MODE',
                     lpad(p::text, 2, '0'));
      emptied := "{schema}".relay_is_old(p);  -- Nobody adds rows any more.
      IF emptied THEN
        EXECUTE format('TRUNCATE "{schema}".outbox_p%s', lpad(p::text, 2, '0'));
      END IF;
    EXCEPTION WHEN lock_not_available THEN
      emptied := false;  -- Somebody uses it: later.
    END;
    IF emptied THEN
      RETURN 1;
    END IF;
  END LOOP;
  RETURN 0;
END $$;

CREATE FUNCTION "{schema}".relay_is_old(p integer) RETURNS boolean LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((
      SELECT max(newest.created_at) < clock_timestamp() - "{schema}".outbox_retention()
      FROM generate_series(0, 15) AS l(lane),
        LATERAL (SELECT o.created_at FROM "{schema}".outbox AS o
                 WHERE o.part = p AND o.lane = l.lane ORDER BY o.seq DESC LIMIT 1) AS newest),
    false)
    AND NOT EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r WHERE r.part = p)
    AND NOT EXISTS (
      SELECT 1 FROM generate_series(0, 15) AS l(lane)
      LEFT JOIN LATERAL (SELECT q.pos, q.pending, q.since FROM "{schema}".outbox_progress AS q
                         WHERE q.lane = l.lane ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS g ON true
      WHERE EXISTS (SELECT 1 FROM "{schema}".outbox AS o
                    WHERE o.part = p AND o.lane = l.lane AND o.seq > coalesce(g.pos, 0))
         OR EXISTS (SELECT 1 FROM "{schema}".outbox AS o
                    WHERE o.part = p AND o.lane = l.lane AND o.xid = ANY (g.pending)
                      AND o.seq > (SELECT min(s.since) FROM unnest(g.since) AS s(since))))
$$;

-- How many rows of a lane are not sent, and since when: those behind pos, `most` at most, and those of
-- pending transactions that can be seen, so that they have ended. For these 10,000 rows are looked through
-- at most, and none where no transaction has ended. `more`: the count ended before the rows did.
-- Rows are read in the order of the index, whatever the planner knows of the tables: who sorts them reads
-- all of the outbox, for each lane.
CREATE FUNCTION "{schema}".relay_unsent(of_lane integer, most bigint)
RETURNS TABLE (waiting bigint, oldest timestamptz, more boolean) LANGUAGE sql STABLE
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET search_path = pg_catalog, pg_temp AS $$
  WITH p AS MATERIALIZED (
    SELECT q.* FROM "{schema}".outbox_progress AS q WHERE q.lane = of_lane
    ORDER BY q.fence DESC, q.n DESC LIMIT 1
  ), ended AS MATERIALIZED (
    SELECT min(CASE WHEN x.xid = ANY (p.draining) THEN p.late_to ELSE x.since END) AS low
    FROM p, LATERAL unnest(p.pending, p.since) AS x(xid, since)
    WHERE pg_visible_in_snapshot(x.xid, pg_current_snapshot())
       OR x.xid >= pg_snapshot_xmax(pg_current_snapshot())
  ), behind AS MATERIALIZED (
    SELECT o.xid, o.seq, o.created_at FROM "{schema}".outbox AS o
    WHERE o.lane = of_lane AND o.seq > (SELECT e.low FROM ended AS e)
      AND o.seq <= (SELECT p.pos FROM p) ORDER BY o.seq LIMIT 10000
  ), late AS (
    SELECT count(*) AS count, min(b.created_at) AS oldest FROM behind AS b, p
    WHERE b.xid = ANY (p.pending) AND NOT (b.xid = ANY (p.draining) AND b.seq <= p.late_to)
  ), fresh AS (
    SELECT count(*) AS count, min(f.created_at) AS oldest
    FROM (SELECT o.created_at FROM "{schema}".outbox AS o
          WHERE o.lane = of_lane AND o.seq > coalesce((SELECT p.pos FROM p), 0::bigint)
          ORDER BY o.seq LIMIT most) AS f
  )
  SELECT l.count + f.count, least(l.oldest, f.oldest),
         f.count = most OR (SELECT count(*) FROM behind) = 10000::bigint
  FROM late AS l, fresh AS f
$$;

-- One row per lane: who holds it, how far it is, what waits. To compile it would take a second.
CREATE FUNCTION "{schema}".relay_lanes() RETURNS TABLE (
  lane integer, owner text, lease_ms bigint, fence bigint, pos bigint, settled_at timestamptz,
  attempts integer, waiting bigint, oldest_ms bigint, retries bigint, blocked_keys bigint,
  sent bigint, more boolean)
LANGUAGE sql SET jit = off SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.lane::integer, CASE WHEN l.lease_until > clock_timestamp() THEN l.owner END,
    CASE WHEN l.lease_until > clock_timestamp()
         THEN (extract(epoch FROM l.lease_until - clock_timestamp()) * 1000)::bigint END,
    l.fence, coalesce(p.pos, 0), p.at, coalesce(p.attempts, 0),
    u.waiting, (extract(epoch FROM clock_timestamp() - least(u.oldest, a.oldest)) * 1000)::bigint,
    (SELECT count(*) FROM "{schema}".outbox_retry AS r WHERE r.lane = l.lane),
    (SELECT count(DISTINCT r.key) FROM "{schema}".outbox_retry AS r WHERE r.lane = l.lane),
    coalesce(p.sent, 0), u.more
  FROM "{schema}".outbox_lane AS l
  LEFT JOIN LATERAL (SELECT * FROM "{schema}".outbox_progress AS q WHERE q.lane = l.lane
                     ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p ON true
  CROSS JOIN LATERAL "{schema}".relay_unsent(l.lane, 100000) AS u
  -- First the one, then its row: together the planner would look for both along the outbox.
  LEFT JOIN LATERAL (SELECT r.seq, r.part FROM "{schema}".outbox_retry AS r
                     WHERE r.lane = l.lane ORDER BY r.seq LIMIT 1) AS f ON true
  LEFT JOIN LATERAL (SELECT o.created_at AS oldest FROM "{schema}".outbox AS o
                     WHERE o.lane = l.lane AND o.seq = f.seq AND o.part = f.part LIMIT 1) AS a ON true
  ORDER BY l.lane
$$;

-- What concerns all lanes: dead letters, size, rows that wait for vacuum, and the oldest
-- transaction of this database other than this one, with who runs it.
CREATE FUNCTION "{schema}".relay_figures() RETURNS TABLE (
  dead_letters bigint, outbox_bytes bigint, dead_rows bigint, transaction_ms bigint,
  transaction_of text, sees_transactions boolean)
LANGUAGE sql SET jit = off SET search_path = pg_catalog, pg_temp AS $$
  SELECT (SELECT count(*) FROM "{schema}".outbox_dead),
    (SELECT sum(pg_total_relation_size(i.inhrelid))::bigint FROM pg_inherits AS i
     WHERE i.inhparent = '"{schema}".outbox'::regclass),
    (SELECT coalesce(sum(t.n_dead_tup), 0)::bigint FROM pg_stat_user_tables AS t
     WHERE t.schemaname = '{schema}'),
    a.age_ms, a.who, pg_has_role('pg_read_all_stats', 'USAGE')
  FROM (SELECT 1) AS one LEFT JOIN LATERAL (
    SELECT (extract(epoch FROM clock_timestamp() - s.xact_start) * 1000)::bigint AS age_ms,
      format('pid %s, user %s, application %s, %s', s.pid, s.usename,
             coalesce(nullif(s.application_name, ''), '-'), s.state) AS who
    FROM pg_stat_activity AS s
    WHERE s.datname = current_database() AND s.xact_start IS NOT NULL AND s.pid <> pg_backend_pid()
      AND s.backend_type = 'client backend'
    ORDER BY s.xact_start LIMIT 1) AS a ON true
$$;
