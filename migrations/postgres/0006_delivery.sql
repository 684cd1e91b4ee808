-- Names these tables, for keys of deliveries: a restore keeps it, so a record has the same key there.
CREATE TABLE "{schema}".outbox_uid (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  uid text NOT NULL
);
INSERT INTO "{schema}".outbox_uid (uid) VALUES ("{schema}".uuid7()::text);

-- Of a record that waits for another attempt: when its first one was. What waits only behind another has had none, and
-- this changes when it has.
ALTER TABLE "{schema}".outbox_retry ADD COLUMN tried_at timestamptz NOT NULL DEFAULT now();

-- As before, but it tells two more things of a record: when it was published (milliseconds since 1970), and of one that
-- was tried before, how long ago its first attempt was (milliseconds).
DROP FUNCTION "{schema}".relay_take(integer[], bigint[], bigint[], text[], text[], text[], bigint[], bigint[], bigint[],
  bigint, integer[], integer[], bigint, bigint, boolean);
CREATE FUNCTION "{schema}".relay_take(
  lanes integer[], fences bigint[], positions bigint[], pendings text[], sinces text[],
  drainings text[], late_tos bigint[], sents bigint[], seen bigint[], mark bigint,
  tries integer[], most integer[], span bigint, bytes bigint, solo boolean DEFAULT NULL)
RETURNS TABLE (kind text, lane text, n text, seq text, part text, attempt text, blocked text,
  id text, type text, key text, payload bytea, headers text, correlation_id text, causation_id text,
  created text, tried text)
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
                      q.tried_at, q.taken AND NOT q.alone AS uncounted, w.alone
               FROM "{schema}".outbox_retry AS q
               WHERE q.lane = w.lane AND q.next_at <= clock_timestamp() AND (q.taken OR NOT w.alone)
               ORDER BY CASE WHEN w.alone THEN q.attempts END, q.next_at, q.n
               LIMIT CASE WHEN w.alone THEN 1 ELSE 50 END) AS h
    WHERE w.has_retries AND coalesce(solo = w.alone, true)
  ), behind AS MATERIALIZED (  -- Y1: nothing is known against what only waited behind another.
    SELECT h.lane, h.most, h.head, h.due, b.n, b.part, b.seq, b.key, b.attempts, b.tried_at, false, false
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
    SET attempts = h.attempt, taken = true, alone = h.alone, fence = w.fence,
        tried_at = CASE WHEN h.attempt = 1 THEN clock_timestamp() ELSE r.tried_at END
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
         NULL, NULL, NULL, pg_current_snapshot()::text, NULL, NULL, NULL::bytea, NULL, NULL, NULL,
         NULL, NULL
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
         NULL, NULL, NULL::bytea, NULL, NULL, NULL, NULL, NULL FROM wanted AS w
  UNION ALL
  (SELECT 'retry', h.lane::text, h.n::text, h.seq::text, h.part::text, h.attempt::text, 'f', o.id,
          o.type, h.key, o.payload, "{schema}".relay_headers(o.headers), o.correlation_id,
          o.causation_id, (date_part('epoch', o.created_at) * 1000)::bigint::text,
          CASE WHEN h.attempt > 1 THEN
            (date_part('epoch', clock_timestamp() - h.tried_at) * 1000)::bigint::text END
   FROM again AS h  -- Without an id if somebody has deleted it from the outbox.
        LEFT JOIN "{schema}".outbox AS o ON o.lane = h.lane AND o.seq = h.seq AND o.part = h.part
   ORDER BY h.lane, h.place)
  UNION ALL
  SELECT 'late', t.lane::text, NULL, o.seq::text, o.part::text, '1',
         (t.has_retries AND EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                                    WHERE r.lane = t.lane AND r.key = o.key))::text,
         o.id, o.type, o.key, o.payload, "{schema}".relay_headers(o.headers), o.correlation_id,
         o.causation_id, (date_part('epoch', o.created_at) * 1000)::bigint::text, NULL
  FROM late AS t
       JOIN "{schema}".outbox AS o ON o.lane = t.lane AND o.seq = t.seq AND o.part = t.part
  UNION ALL
  SELECT 'fresh', o.of_lane::text, NULL, o.seq::text, o.part::text, (o.tries + 1)::text,
         (o.has_retries AND EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                                    WHERE r.lane = o.of_lane AND r.key = o.key))::text,
         o.id, o.type, o.key, o.payload,
         CASE WHEN o.headers IS NOT NULL THEN "{schema}".relay_headers(o.headers) END,
         o.correlation_id, o.causation_id, (date_part('epoch', o.created_at) * 1000)::bigint::text, NULL
  FROM fresh AS o;
END $$;
