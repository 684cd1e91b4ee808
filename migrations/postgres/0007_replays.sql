-- How often an event was redriven goes with it, as the header hapax-replay: whoever sends it tells its endpoint.
-- Of headers that are pairs (publish_check).
CREATE FUNCTION "{schema}".replayed_headers(headers jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(pair ORDER BY place) FILTER (WHERE lower(pair ->> 0) <> 'hapax-replay'), '[]')
    || jsonb_build_array(jsonb_build_array('hapax-replay', (1 + coalesce(max(
         CASE WHEN lower(pair ->> 0) = 'hapax-replay' AND pair ->> 1 ~ '^[0-9]{1,8}$'
              THEN (pair ->> 1)::integer END), 0))::text))
  FROM jsonb_array_elements(coalesce(headers, '[]')) WITH ORDINALITY AS e (pair, place)
$$;

-- As before, and it counts.
CREATE OR REPLACE FUNCTION "{schema}".relay_redrive(ids text[])
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
    EXCEPTION WHEN SQLSTATE 'HX001' OR SQLSTATE 'HX002' THEN
      RETURN QUERY SELECT NULL::bigint, letter.id, SQLERRM;
      CONTINUE;
    END;
    PERFORM "{schema}".publish(letter.type, letter.payload, letter.key, letter.id,
                               "{schema}".replayed_headers(letter.headers),
                               letter.correlation_id, letter.causation_id);
    DELETE FROM "{schema}".outbox_dead AS d WHERE d.seq = letter.seq;
    published := published + 1;
  END LOOP;
  RETURN QUERY SELECT published, NULL::text, NULL::text;
END $$;

-- As before, and whoever cleans may want less kept than the outbox does (hapax.delivered_kept, an interval). It
-- cannot want more: the partition is used again.
CREATE OR REPLACE FUNCTION "{schema}".relay_is_old(p integer) RETURNS boolean LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((
      SELECT max(newest.created_at) < clock_timestamp() - least("{schema}".outbox_retention(),
        nullif(current_setting('hapax.delivered_kept', true), '')::interval)
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
