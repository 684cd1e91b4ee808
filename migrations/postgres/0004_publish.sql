-- Events are published as bytea, text, json or jsonb, under keys and ids of the usual types, and nothing that
-- is called on the way can be somebody else's. {schema} is replaced by the name of the schema.
-- The texts of functions without a search_path of their own are read by that of the caller, where another
-- schema may stand before pg_catalog. So functions, operators and types are named with their schema there.

-- These two keep the retention that `hapax migrate --retention` has set.
DO $$
DECLARE
  retention bigint := ceil(extract(epoch FROM "{schema}".outbox_retention()))::bigint;
  period bigint := greatest((retention + 29) / 30, 120);
  days bigint := (period + 86399) / 86400;
BEGIN
  EXECUTE format($f$
    CREATE OR REPLACE FUNCTION "{schema}".outbox_part() RETURNS integer LANGUAGE sql STABLE AS
    $b$ SELECT %s $b$ $f$, CASE WHEN period < 86400 THEN format(
      '(pg_catalog.date_part(''epoch'', CURRENT_TIMESTAMP) OPERATOR(pg_catalog./) %s::double precision)'
      '::integer OPERATOR(pg_catalog.%%) 32', period)
    ELSE '(CURRENT_DATE OPERATOR(pg_catalog.-) ''1970-01-01''::pg_catalog.date)' || CASE days WHEN 1 THEN ''
      ELSE format(' OPERATOR(pg_catalog./) %s', days) END || ' OPERATOR(pg_catalog.%) 32' END);
END $$;

CREATE OR REPLACE FUNCTION "{schema}".outbox_is_awaited() RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT pg_catalog.to_timestamp(pg_catalog.pg_sequence_last_value(
           '"{schema}".outbox_listening'::pg_catalog.regclass)::double precision)
         OPERATOR(pg_catalog.>) CURRENT_TIMESTAMP
$$;
CREATE OR REPLACE FUNCTION "{schema}".outbox_notify() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF (pg_catalog.current_setting('hapax.notify', true) OPERATOR(pg_catalog.=) 'off') IS NOT TRUE THEN
    PERFORM pg_catalog.pg_notify('{schema}_outbox', '');
  END IF;
  RETURN true;
END $$;
CREATE OR REPLACE FUNCTION "{schema}".outbox_xid(key text) RETURNS xid8 LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN key IS NULL OR pg_catalog.pg_advisory_xact_lock(
                1214345336, pg_catalog.hashtext(key) OPERATOR(pg_catalog.&) 4095) IS NOT NULL
              THEN pg_catalog.pg_current_xact_id() END
$$;
-- Whoever inserts without publish() calls this one, too: here an empty id or key is refused.
CREATE FUNCTION "{schema}".outbox_refuse(key text, id text) RETURNS integer LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'HX1001: the % of an event is empty; leave it out (NULL) for none',
    CASE WHEN id = '' THEN 'id' ELSE 'key' END USING ERRCODE = 'HX001';
END $$;
CREATE OR REPLACE FUNCTION "{schema}".outbox_lane(key text, id text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN id OPERATOR(pg_catalog.=) '' OR key OPERATOR(pg_catalog.=) ''
              THEN "{schema}".outbox_refuse(key, id)
              ELSE pg_catalog.hashtext(coalesce(key, id)) OPERATOR(pg_catalog.&) 15 END
$$;
CREATE OR REPLACE FUNCTION "{schema}".outbox_stamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN NOT "{schema}".outbox_is_awaited() OR "{schema}".outbox_notify()
              THEN pg_catalog.clock_timestamp() END
$$;
ALTER FUNCTION "{schema}".uuid7() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION "{schema}".uuid_of(uuid, text) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION "{schema}".headers_are_pairs(jsonb) SET search_path = pg_catalog, pg_temp;

-- Raises if an event may not be stored.
CREATE OR REPLACE FUNCTION "{schema}".publish_check(
  type text, payload bytea, key text, id text, headers jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  large record;
BEGIN
  IF id = '' OR key = '' THEN
    PERFORM "{schema}".outbox_refuse(key, id);
  ELSIF (type <> '') IS NOT TRUE THEN
    PERFORM "{schema}".refuse('the type of an event is empty or NULL; give it');
  ELSIF NOT "{schema}".headers_are_pairs(headers) THEN
    PERFORM "{schema}".refuse('the headers of an event are an array of pairs of strings');
  END IF;
  SELECT * INTO large FROM (VALUES
    ('id', octet_length(id), 255), ('type', octet_length(type), 255), ('key', octet_length(key), 255),
    ('payload', octet_length(payload), 8388608)) AS v(what, bytes, most) WHERE bytes > most LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'HX1002: the % of an event has % bytes, at most %', large.what, large.bytes, large.most
      USING ERRCODE = 'HX002';
  END IF;
END $$;

-- The bytes of a payload. Texts as they are, in UTF-8: the escapes of bytea are not read in them. A literal
-- without a type is a text; one that was written for bytea is refused, because nobody can tell which is meant.
CREATE FUNCTION "{schema}".payload_bytes(payload bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT payload
$$;
CREATE FUNCTION "{schema}".payload_bytes(payload text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF pg_catalog.starts_with(payload, '\x')
      AND pg_catalog.textregexeq(payload, '^\\x([0-9a-fA-F]{2})*$') THEN
    PERFORM "{schema}".refuse('the payload reads like bytea in hexadecimal, but is a text: for those bytes '
      'cast it to bytea, for this text use convert_to(payload, ''UTF8'')');
  END IF;
  -- A database without an encoding holds any bytes; they stay as they are.
  RETURN pg_catalog.convert_to(payload, CASE WHEN pg_catalog.getdatabaseencoding()
    OPERATOR(pg_catalog.=) 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END);
END $$;
CREATE FUNCTION "{schema}".payload_bytes(payload json) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT "{schema}".payload_bytes(payload::pg_catalog.text)
$$;
CREATE FUNCTION "{schema}".payload_bytes(payload jsonb) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT "{schema}".payload_bytes(payload::pg_catalog.text)
$$;

-- Stores an event in the caller's transaction and answers its id.
-- An event of the usual kind is known by few functions.
DROP FUNCTION "{schema}".publish(text, bytea, text, text, jsonb, text, text);
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, key text DEFAULT NULL, id text DEFAULT NULL,
  headers jsonb DEFAULT NULL, correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  bytes pg_catalog.bytea := "{schema}".payload_bytes(payload);
BEGIN
  id := coalesce(id, pg_catalog.gen_random_uuid()::pg_catalog.text);
  IF (id OPERATOR(pg_catalog.<>) '' AND type OPERATOR(pg_catalog.<>) ''
      AND (key OPERATOR(pg_catalog.<>) '') IS NOT FALSE AND headers IS NULL
      AND pg_catalog.octet_length(id OPERATOR(pg_catalog.||) type OPERATOR(pg_catalog.||)
                                  coalesce(key, '')) OPERATOR(pg_catalog.<=) 255
      AND pg_catalog.octet_length(bytes) OPERATOR(pg_catalog.<=) 8388608) IS NOT TRUE THEN
    PERFORM "{schema}".publish_check(type, bytes, key, id, headers);
  END IF;
  INSERT INTO "{schema}".outbox
    (part, xid, lane, id, type, key, payload, headers, correlation_id, causation_id, created_at)
  VALUES (
    "{schema}".outbox_part(), "{schema}".outbox_xid(key), "{schema}".outbox_lane(key, id),
    id, type, key, bytes, headers, correlation_id, causation_id, pg_catalog.clock_timestamp());
  IF "{schema}".outbox_is_awaited() THEN
    PERFORM "{schema}".outbox_notify();
  END IF;
  RETURN id;
END $$;
-- The same for keys and ids that are numbers or UUIDs. A type that is not text has no default, so that a call
-- without it fits one function only. The last is for an id without a key, which is named: id => ... In each
-- place that all of them have, literals without a type must mean text in all or in none: so headers are the
-- fifth everywhere.
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, key bigint, id text DEFAULT NULL, headers jsonb DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT "{schema}".publish(type, payload, key::pg_catalog.text, id, headers, correlation_id, causation_id)
$$;
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, key uuid, id text DEFAULT NULL, headers jsonb DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT "{schema}".publish(type, payload, key::pg_catalog.text, id, headers, correlation_id, causation_id)
$$;
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, key text, id uuid, headers jsonb DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT "{schema}".publish(type, payload, key, id::pg_catalog.text, headers, correlation_id, causation_id)
$$;
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, key bigint, id uuid, headers jsonb DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT "{schema}".publish(type, payload, key::pg_catalog.text, id::pg_catalog.text, headers, correlation_id, causation_id)
$$;
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, key uuid, id uuid, headers jsonb DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT "{schema}".publish(type, payload, key::pg_catalog.text, id::pg_catalog.text, headers, correlation_id, causation_id)
$$;
CREATE FUNCTION "{schema}".publish(
  type text, payload anycompatiblenonarray, id uuid, correlation_id text DEFAULT NULL,
  headers jsonb DEFAULT NULL, causation_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT "{schema}".publish(type, payload, NULL::pg_catalog.text, id::pg_catalog.text, headers,
                            correlation_id, causation_id)
$$;

-- The same for several events, in their order. The locks are taken in an order of their own, so that
-- two batches never wait for each other.
CREATE OR REPLACE FUNCTION "{schema}".publish_all(
  types text[], payloads bytea[], keys text[], ids text[], headers jsonb[],
  correlation_ids text[], causation_ids text[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  event_xid xid8 := pg_current_xact_id();
BEGIN
  IF array_position(types, '') IS NOT NULL OR array_position(types, NULL) IS NOT NULL THEN
    PERFORM "{schema}".refuse('the type of an event is empty or NULL; give it');
  END IF;
  IF array_position(ids, NULL) IS NOT NULL THEN
    PERFORM "{schema}".refuse('the id of an event is NULL; give it');
  END IF;
  IF cardinality(types) <> ANY (ARRAY[cardinality(payloads), cardinality(keys), cardinality(ids),
      cardinality(headers), cardinality(correlation_ids), cardinality(causation_ids)]) THEN
    PERFORM "{schema}".refuse('the arrays of publish_all differ in length');
  END IF;
  PERFORM pg_advisory_xact_lock(1214345336, slot) FROM (
    SELECT DISTINCT hashtext(k) & 4095 AS slot FROM unnest(keys) AS k WHERE k IS NOT NULL
    ORDER BY slot) AS slots;
  INSERT INTO "{schema}".outbox
    (part, xid, lane, id, type, key, payload, headers, correlation_id, causation_id, created_at)
  SELECT "{schema}".outbox_part(), event_xid, "{schema}".outbox_lane(e.key, e.id), e.id, e.type, e.key,
         e.payload, e.headers, e.correlation_id, e.causation_id, clock_timestamp()
  FROM unnest(types, payloads, keys, ids, headers, correlation_ids, causation_ids) WITH ORDINALITY
    AS e(type, payload, key, id, headers, correlation_id, causation_id, n) ORDER BY e.n;
  IF "{schema}".outbox_is_awaited() THEN
    PERFORM "{schema}".outbox_notify();
  END IF;
END $$;

-- Deletes what a lane's newest row of progress supersedes. The newest is that of the highest fence, and of these
-- the one with the highest n: in a database that was restored without its sequences an n may be lower than
-- an older one.
CREATE FUNCTION "{schema}".relay_forget_progress(of_lane integer) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM "{schema}".outbox_progress AS p
  USING (SELECT q.fence, q.n FROM "{schema}".outbox_progress AS q WHERE q.lane = of_lane
         ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS newest
  WHERE p.lane = of_lane AND (p.fence, p.n) < (newest.fence, newest.n)
$$;
-- What became of the records of lanes. The arrays up to `sents` are where the lanes stand now, `seen` are
-- the marks of what the relay stored before, `mark` is that of what is stored now. The outcomes are
-- those that are not simply "accepted and new": accepted, retry, dead, held, back (not sent).
-- Answers the lanes that are no longer the relay's; nothing happened for these.
CREATE OR REPLACE FUNCTION "{schema}".relay_settle(
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
    PERFORM "{schema}".relay_forget_progress(lane) FROM unnest(lanes) AS w(lane)
    WHERE w.lane <> ALL (gone);
  END IF;
  IF cardinality(of_lanes) > 0 THEN
    PERFORM "{schema}".relay_settle_rest(
      gone, of_lanes, kinds, ns, parts, seqs, keys, tries, after_ms, reasons);
  END IF;
  RETURN QUERY SELECT unnest(gone);
END $$;

-- Publishes dead letters again, under their ids and in the order of their numbers; NULL = all. One that
-- was inserted without publish() and may not be published as it is stays, and keeps back no other.
-- Answers a row for each of these, and one with how many were published.
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
CREATE OR REPLACE FUNCTION "{schema}".relay_clean() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p integer;
  emptied boolean;
BEGIN
  -- A snapshot of the whole transaction would not show what was committed while it waited for the lock.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'HX1012: relay_clean() must see what others have just committed'
      USING ERRCODE = 'HX012', HINT = 'Call it in a transaction of level READ COMMITTED.';
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
