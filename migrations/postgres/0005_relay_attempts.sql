-- Y5: a relay that dies counts against a record only if the record was taken alone. Of a record that waits for
-- another attempt `alone` says so; it means something while `taken` does.
-- `fence` is that of the lane when the record was taken.
ALTER TABLE "{schema}".outbox_retry ADD COLUMN alone boolean NOT NULL DEFAULT false;
ALTER TABLE "{schema}".outbox_retry ADD COLUMN fence bigint NOT NULL DEFAULT 0;

-- As before, but what was taken among others counts no longer when somebody died over it. `solo`: one lane is asked,
-- and one record of it is taken. Not `solo`: of a lane with a suspect nothing is taken, and `n` tells its attempts.
-- NULL: asked by a relay that knows only the version before, which is given a suspect beside records of other lanes.
DROP FUNCTION "{schema}".relay_take(integer[], bigint[], bigint[], text[], text[], text[], bigint[], bigint[], bigint[],
  bigint, integer[], integer[], bigint, bigint);
CREATE FUNCTION "{schema}".relay_take(
  lanes integer[], fences bigint[], positions bigint[], pendings text[], sinces text[],
  drainings text[], late_tos bigint[], sents bigint[], seen bigint[], mark bigint,
  tries integer[], most integer[], span bigint, bytes bigint, solo boolean DEFAULT NULL)
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
      LATERAL (SELECT q.n AS head, q.next_at AS due, q.n, q.part, q.seq, q.key, q.attempts,
                      q.taken AND NOT q.alone AS uncounted, w.alone
               FROM "{schema}".outbox_retry AS q
               WHERE q.lane = w.lane AND q.next_at <= clock_timestamp() AND (q.taken OR NOT w.alone)
               ORDER BY CASE WHEN w.alone THEN q.attempts END, q.next_at, q.n
               LIMIT CASE WHEN w.alone THEN 1 ELSE 50 END) AS h
    WHERE w.has_retries AND coalesce(solo = w.alone, true)
  ), behind AS MATERIALIZED (  -- Y1: nothing is known against what only waited behind another.
    SELECT h.lane, h.most, h.head, h.due, b.n, b.part, b.seq, b.key, b.attempts, false, false
    FROM heads AS h,
      LATERAL (SELECT f.*, bool_and(f.attempts = 0 AND NOT f.taken) OVER (ORDER BY f.n) AS untried
               FROM (SELECT * FROM "{schema}".outbox_retry AS q
                     WHERE q.lane = h.lane AND q.key = h.key AND q.n > h.head
                     ORDER BY q.n LIMIT h.most) AS f) AS b
    WHERE h.attempts = 0 AND b.untried
  ), again AS MATERIALIZED (
    SELECT r.*, r.attempts + 1 - r.uncounted::integer AS attempt FROM (
      SELECT c.*, sum(s.size) OVER (PARTITION BY c.lane ORDER BY c.place ROWS UNBOUNDED PRECEDING)
                  - s.size AS before
      FROM (SELECT u.*, row_number() OVER (PARTITION BY u.lane ORDER BY u.due, u.head, u.n) AS place
            FROM (SELECT * FROM heads UNION ALL SELECT * FROM behind) AS u) AS c,
        LATERAL (SELECT coalesce(max(octet_length(o.payload)), 0) AS size FROM "{schema}".outbox AS o
                 WHERE o.lane = c.lane AND o.seq = c.seq AND o.part = c.part) AS s
      WHERE c.place <= greatest(c.most, 50)) AS r
    WHERE r.before < bytes
  ), touched AS (
    UPDATE "{schema}".outbox_retry AS r
    SET attempts = h.attempt, taken = true, alone = h.alone, fence = w.fence
    FROM again AS h JOIN wanted AS w ON w.lane = h.lane WHERE r.n = h.n
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
  SELECT 'lane', w.lane::text,
         CASE WHEN w.alone AND NOT solo THEN
           (SELECT min(r.attempts)::text FROM "{schema}".outbox_retry AS r
            WHERE r.lane = w.lane AND r.next_at <= clock_timestamp() AND r.taken) END,
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

-- Where is event X? SELECT * FROM "{schema}".outbox_trace WHERE id = 'X'. All of the outbox is looked through: an index
-- by id would cost every publisher. Of an event that was published more than once the highest seq counts.
-- waiting: not sent yet. taken: a relay that lives has it, or what comes before it in its lane. retry: an attempt
-- failed, and it is due at next_at. held: an earlier event of its key waits. sent: it was accepted.
CREATE VIEW "{schema}".outbox_trace AS
SELECT o.id, o.seq, o.lane, o.type, o.key, o.created_at,
  CASE WHEN r.taken AND l.relay IS NOT NULL THEN 'taken'
       WHEN r.attempts > 0 OR r.next_at IS NOT NULL THEN 'retry'
       WHEN r.n IS NOT NULL THEN 'held'
       WHEN o.seq > coalesce(p.pos, 0)
         OR (o.xid = ANY (p.pending) AND NOT (o.xid = ANY (p.draining) AND o.seq <= p.late_to))
       THEN CASE WHEN p.attempts > 0 AND l.relay IS NOT NULL THEN 'taken' ELSE 'waiting' END
       WHEN o.next_seq IS NOT NULL THEN 'published again'
       ELSE 'sent' END AS state,
  coalesce(r.attempts, 0) AS attempts, r.next_at, nullif(r.last_error, '') AS last_error, l.relay,
  NULL::timestamptz AS died_at
FROM (SELECT e.*, lead(e.seq) OVER (PARTITION BY e.id ORDER BY e.seq) AS next_seq FROM "{schema}".outbox AS e) AS o
LEFT JOIN "{schema}".outbox_retry AS r ON r.lane = o.lane AND r.seq = o.seq
LEFT JOIN LATERAL (SELECT * FROM "{schema}".outbox_progress AS q WHERE q.lane = o.lane
                   ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p ON true
LEFT JOIN LATERAL (SELECT m.owner AS relay FROM "{schema}".outbox_lane AS m
                   WHERE m.lane = o.lane AND m.lease_until > clock_timestamp()) AS l ON true
WHERE NOT EXISTS (SELECT 1 FROM "{schema}".outbox_dead AS d WHERE d.seq = o.seq)
UNION ALL
SELECT d.id, d.seq, NULL, d.type, d.key, d.created_at, 'dead letter', d.attempts, NULL, d.reason, NULL, d.died_at
FROM "{schema}".outbox_dead AS d;

-- As before, but what a process had taken does not count against the records when the same process takes the lane again.
CREATE OR REPLACE FUNCTION "{schema}".relay_lease(
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
  again integer[];
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
      'connected again' USING ERRCODE = 'HX012';
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
  -- Y5: who takes its own lane again did not die over what it had taken under its last fence. An owner with a key
  -- (NAME#KEY) is one process; of a relay of the version before, which has none, nobody knows.
  SELECT coalesce(array_agg(l.lane), '{}') INTO again FROM "{schema}".outbox_lane AS l
  WHERE l.owner = relay AND position('#' IN relay) > 0 AND NOT EXISTS (
    SELECT 1 FROM unnest(kept_lanes, kept_fences) AS k(lane, fence)
    WHERE k.lane = l.lane AND k.fence = l.fence AND l.lease_until > instant);
  UPDATE "{schema}".outbox_retry AS r SET taken = false, attempts = r.attempts - 1
  FROM "{schema}".outbox_lane AS l
  WHERE l.lane = ANY (again) AND r.lane = l.lane AND r.fence = l.fence AND r.taken;

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
           coalesce(p.late_to, 0), coalesce(p.sent, 0),
           CASE WHEN l.lane = ANY (again) AND p.fence = l.fence - 1 THEN greatest(p.attempts - 1, 0)
                ELSE coalesce(p.attempts, 0) END,
           coalesce(p.mark, 0)
    FROM "{schema}".outbox_lane AS l
    LEFT JOIN LATERAL (SELECT * FROM "{schema}".outbox_progress AS q WHERE q.lane = l.lane
                       ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p ON true
    WHERE l.owner = relay AND l.lease_until > instant
    UNION ALL SELECT fair, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL;
END $$;

-- As before, but a record that is held may have to wait for a while.
CREATE OR REPLACE FUNCTION "{schema}".relay_settle_rest(
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
    ELSIF o.n IS NOT NULL AND o.kind IN ('back', 'held') THEN  -- Y4: no attempt.
      UPDATE "{schema}".outbox_retry AS r
      SET taken = false, attempts = r.attempts - 1,
          next_at = CASE WHEN o.after_ms > 0
                         THEN clock_timestamp() + o.after_ms * interval '1 millisecond'
                         ELSE r.next_at END
      WHERE r.n = o.n AND r.taken;
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
