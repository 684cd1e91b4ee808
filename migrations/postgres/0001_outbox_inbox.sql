-- The outbox, the inbox and claims, in a schema of their own. {schema} is replaced by its name.
-- Functions read their text by the caller's search_path, and what fits the types exactly is preferred to
-- what is the server's own: who may create something in one of its schemas would act as whoever calls.
-- So they set it; but for those that are put into the texts of others, or called for each event. There
-- arguments have the exact types that the server's own functions and operators take, and functions that
-- take any type are named with pg_catalog.

CREATE SEQUENCE "{schema}".outbox_seq;
-- Until when (seconds since 1970) a relay sleeps and wants to be woken by NOTIFY. A sequence,
-- because setval() is seen by everybody at once, whatever their snapshot, and leaves no dead rows.
-- A NOTIFY holds a lock of the whole server while its transaction commits, so that commits go one by
-- one; under load nobody sleeps, and nobody has to notify.
CREATE SEQUENCE "{schema}".outbox_listening MINVALUE 0 START 0;
DO $$ BEGIN PERFORM setval('"{schema}".outbox_listening', 0); END $$;

-- O5: the partition of this moment. Each is used for a thirtieth of the retention or a little longer, so
-- that one has rested for longer than the retention before it is used again. Which one exactly does not
-- matter (a day ends elsewhere in another time zone, at most 26 hours apart): those with young rows are
-- not emptied. `hapax migrate --retention` replaces these two. Each function that an expression names is looked up anew by each statement, which
-- costs more than to call it, so they are few, and CURRENT_DATE is none.
CREATE FUNCTION "{schema}".outbox_retention() RETURNS interval LANGUAGE sql IMMUTABLE AS
  $$ SELECT interval '2592000 seconds' $$;
CREATE FUNCTION "{schema}".outbox_part() RETURNS integer LANGUAGE sql STABLE AS
  $$ SELECT (CURRENT_DATE - DATE '1970-01-01') % 32 $$;

-- Whether a relay has slept since this transaction began.
CREATE FUNCTION "{schema}".outbox_is_awaited() RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT to_timestamp(pg_sequence_last_value('"{schema}".outbox_listening'::regclass)::double precision)
           > CURRENT_TIMESTAMP
$$;

-- Wakes relays at COMMIT, unless the session says SET hapax.notify = off: a transaction that notified
-- cannot be prepared (PREPARE TRANSACTION). In PL/pgSQL, so that its text is nobody's who need not notify.
CREATE FUNCTION "{schema}".outbox_notify() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('hapax.notify', true) IS DISTINCT FROM 'off' THEN
    PERFORM pg_notify('{schema}_outbox', '');
  END IF;
  RETURN true;
END $$;

-- The columns of an event that the outbox needs for itself. PostgreSQL puts the texts of these functions
-- into the statements that call them: nobody pays for a call.
-- O1: the xid is taken before the seq: columns are computed in the order of the table. So a row whose
-- seq is below one that a snapshot sees had its xid before that snapshot was made; if the snapshot
-- does not see it, its xid is in the snapshot's list of running transactions, or not below the
-- snapshot's xmax (which is the latest *finished* xid plus one, so that running ones may lie above it
-- and are then not in the list).
-- O2: two transactions that publish under one key commit in the order of their seqs, because the lock
-- is held from before nextval() until the commit is visible. 4,096 locks, not one per key: a
-- transaction with a million keys must not use up the server's lock table, which has room for at least
-- max_locks_per_transaction * max_connections, 6,400 unless it was changed. Fewer would make unrelated
-- transactions wait for each other more often, and deadlock by the square of that. The locks' class is
-- 'Hapx'; those of keys are not negative.
CREATE FUNCTION "{schema}".outbox_xid(key text) RETURNS xid8 LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN key IS NULL OR pg_advisory_xact_lock(1214345336, hashtext(key) & 4095) IS NOT NULL
              THEN pg_current_xact_id() END
$$;
CREATE FUNCTION "{schema}".outbox_lane(key text, id text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtext(coalesce(key, id)) & 15
$$;
-- Now, and a relay that sleeps is woken at COMMIT. After the xid: a relay that was not asleep yet finds
-- this transaction among those that run.
CREATE FUNCTION "{schema}".outbox_stamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN NOT "{schema}".outbox_is_awaited() OR "{schema}".outbox_notify()
              THEN clock_timestamp() END
$$;

-- Rows are inserted and read, never updated or deleted. The ring of partitions is emptied by TRUNCATE,
-- one partition at a time, long after inserts have moved on to others. No CHECK: PostgreSQL reads the
-- text of each one anew for each statement, which cost a third of an insert; publish() checks.
CREATE TABLE "{schema}".outbox (
  part integer NOT NULL DEFAULT "{schema}".outbox_part(),
  xid xid8 NOT NULL,
  seq bigint NOT NULL DEFAULT nextval('"{schema}".outbox_seq'),
  lane integer NOT NULL,
  id text NOT NULL,
  type text NOT NULL,
  key text,
  payload bytea NOT NULL,
  headers jsonb,
  correlation_id text,
  causation_id text,
  created_at timestamptz NOT NULL DEFAULT "{schema}".outbox_stamp(),
  PRIMARY KEY (lane, seq, part)
) PARTITION BY LIST (part);
DO $$
BEGIN
  FOR part IN 0..31 LOOP
    EXECUTE format('CREATE TABLE "{schema}".outbox_p%s PARTITION OF "{schema}".outbox FOR VALUES IN (%s)',
                   lpad(part::text, 2, '0'), part);
  END LOOP;
END $$;

-- RFC 9562: version 7, milliseconds first; version 8 from SHA-256 over the namespace and a name.
CREATE FUNCTION "{schema}".uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
    substring(int8send(floor(date_part('epoch', clock_timestamp())
                             * 1000::double precision)::bigint) FROM 3)
    FROM 1 FOR 6), 52::bigint, 1), 53::bigint, 1), 'hex')::uuid
$$;
CREATE FUNCTION "{schema}".uuid_of(namespace uuid, name text) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT encode(set_byte(set_byte(h, 6, (get_byte(h, 6) & 15) | 128),
                         8, (get_byte(h, 8) & 63) | 128), 'hex')::uuid
  FROM (SELECT substring(sha256(uuid_send(namespace) || convert_to(name, 'UTF8'::name)) FOR 16)) AS s(h)
$$;

-- [["name", "value"], …]. Whatever it is given, it answers.
CREATE FUNCTION "{schema}".headers_are_pairs(headers jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT jsonb_typeof(headers) = 'array' AND NOT pg_catalog.jsonb_path_exists(headers,
    'strict $[*] ? (!(@.type() == "array" && @.size() == 2
               && @[0].type() == "string" && @[1].type() == "string"))'::jsonpath)
$$;

-- Raises if an event may not be stored.
CREATE FUNCTION "{schema}".publish_check(
  type text, payload bytea, key text, id text, headers jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF octet_length(id) NOT BETWEEN 1 AND 255 OR octet_length(type) NOT BETWEEN 1 AND 255
      OR octet_length(key) NOT BETWEEN 1 AND 255 OR octet_length(payload) > 8388608
      OR NOT "{schema}".headers_are_pairs(headers) THEN
    RAISE EXCEPTION 'id, type and key are of 1 to 255 bytes, the payload is of up to 8 MiB, headers '
      'are an array of pairs of strings' USING ERRCODE = 'HX002';
  END IF;
END $$;

-- Stores an event in the caller's transaction and answers its id.
-- An event of the usual kind is known by few functions.
CREATE FUNCTION "{schema}".publish(
  type text, payload bytea, key text DEFAULT NULL, id text DEFAULT NULL, headers jsonb DEFAULT NULL,
  correlation_id text DEFAULT NULL, causation_id text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  id := coalesce(id, gen_random_uuid()::text);
  IF (id <> '' AND type <> '' AND (key <> '') IS NOT FALSE AND headers IS NULL
      AND octet_length(id || type || coalesce(key, '')) <= 255
      AND octet_length(payload) <= 8388608) IS NOT TRUE THEN
    PERFORM "{schema}".publish_check(type, payload, key, id, headers);
  END IF;
  INSERT INTO "{schema}".outbox
    (part, xid, lane, id, type, key, payload, headers, correlation_id, causation_id, created_at)
  VALUES (
    "{schema}".outbox_part(), "{schema}".outbox_xid(key), "{schema}".outbox_lane(key, id),
    id, type, key, payload, headers, correlation_id, causation_id, clock_timestamp());
  IF "{schema}".outbox_is_awaited() THEN
    PERFORM "{schema}".outbox_notify();
  END IF;
  RETURN id;
END $$;

-- The same for several events, in their order. The locks are taken in an order of their own, so that
-- two batches never wait for each other.
CREATE FUNCTION "{schema}".publish_all(
  types text[], payloads bytea[], keys text[], ids text[], headers jsonb[],
  correlation_ids text[], causation_ids text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  event_xid xid8 := pg_current_xact_id();
BEGIN
  PERFORM pg_advisory_xact_lock(1214345336, slot) FROM (
    SELECT DISTINCT hashtext(k) & 4095 AS slot FROM pg_catalog.unnest(keys) AS k WHERE k IS NOT NULL
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

-- The last number that was given out, and the highest up to which a lane was sent; in one statement, so
-- that the first is behind the second only if the sequence went back, as in a restore without sequences.
-- With the rights of the owner: a relay's role need not be allowed to read the sequence.
CREATE FUNCTION "{schema}".outbox_numbers() RETURNS TABLE (given bigint, sent bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT
    (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM "{schema}".outbox_seq AS s),
    coalesce((SELECT max(p.pos) FROM "{schema}".outbox_lane AS l,
                LATERAL (SELECT q.pos FROM "{schema}".outbox_progress AS q WHERE q.lane = l.lane
                         ORDER BY q.fence DESC, q.n DESC LIMIT 1) AS p), 0);
END $$;

-- After the sequence went back: sets it behind all numbers, and gives new ones to the events that were
-- published since, in their order, so that relays find them. Nothing else tells these from events that
-- were sent under the same numbers before. `since` may be earlier than the sequence went back: what was
-- sent before is then sent again, by its id. Rows that wait for another attempt are found without that.
-- Answers how many got new numbers.
CREATE FUNCTION "{schema}".outbox_renumber(since timestamptz) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  event_xid xid8 := pg_current_xact_id();  -- O1: before the numbers.
  behind bigint;
  renumbered bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'outbox_renumber() must see what others have just committed'
      USING ERRCODE = 'HX012', HINT = 'Call it in a transaction of level READ COMMITTED.';
  END IF;
  -- O4: whoever has an event with a number has ended, and nobody gets one until this ends.
  LOCK TABLE "{schema}".outbox IN SHARE ROW EXCLUSIVE MODE;
  SELECT n.given INTO behind FROM "{schema}".outbox_numbers() AS n WHERE n.given < n.sent;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  PERFORM setval('"{schema}".outbox_seq'::regclass, greatest(n.sent, (
    SELECT max(h.seq) FROM generate_series(0, 15) AS l(lane),
      LATERAL (SELECT o.seq FROM "{schema}".outbox AS o WHERE o.lane = l.lane
               ORDER BY o.seq DESC LIMIT 1) AS h)))
  FROM "{schema}".outbox_numbers() AS n;
  WITH missed AS MATERIALIZED (
    SELECT m.*, nextval('"{schema}".outbox_seq'::regclass) AS number FROM (
      SELECT o.lane, o.seq, o.part FROM "{schema}".outbox AS o
      WHERE o.seq <= behind AND o.created_at >= since
        AND NOT EXISTS (SELECT 1 FROM "{schema}".outbox_retry AS r
                        WHERE r.lane = o.lane AND r.seq = o.seq AND r.part = o.part)
      ORDER BY o.seq) AS m)
  UPDATE "{schema}".outbox AS o SET seq = m.number, xid = event_xid FROM missed AS m
  WHERE o.lane = m.lane AND o.seq = m.seq AND o.part = m.part;
  GET DIAGNOSTICS renumbered = ROW_COUNT;
  -- What relays number went back with it.
  PERFORM setval(t.own, greatest(nextval(t.own), t.highest)) FROM (VALUES
    (pg_get_serial_sequence('"{schema}".outbox_retry', 'n')::regclass,
     (SELECT max(n) FROM "{schema}".outbox_retry)),
    (pg_get_serial_sequence('"{schema}".outbox_progress', 'n')::regclass,
     (SELECT max(n) FROM "{schema}".outbox_progress))) AS t(own, highest);
  RETURN renumbered;
END $$;

-- Which messages a subscriber has taken. expires_at NULL = for ever.
CREATE TABLE "{schema}".inbox (
  subscriber text NOT NULL,
  message_id text NOT NULL,
  fingerprint bytea,  -- the first 16 bytes of the content's SHA-256; NULL = any content is the same
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  outcome bytea,
  PRIMARY KEY (subscriber, message_id)
);
CREATE INDEX inbox_expires ON "{schema}".inbox (expires_at) WHERE expires_at IS NOT NULL;

-- Takes those of the messages that are new, and answers them as 'fresh'; a known id with another
-- fingerprint is answered as 'conflict', with its place in the arrays, from 1 on. Duplicates are not
-- answered. Of an id that is there more than once the first place is the one that is new: to answer that
-- place as well would cost a tenth. Sorted, so that two batches with the same messages never wait for
-- each other.
CREATE FUNCTION "{schema}".inbox_accept(
  subscriber text, ids text[], fingerprints bytea[] DEFAULT NULL, retention interval DEFAULT NULL)
RETURNS TABLE (message_id text, verdict text, place integer) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  expires timestamptz := now() + retention;
  taken bigint;
BEGIN
  RETURN QUERY
    INSERT INTO "{schema}".inbox AS i (subscriber, message_id, fingerprint, expires_at)
    SELECT inbox_accept.subscriber, m.id, m.fingerprint, expires
    FROM unnest(ids, fingerprints) WITH ORDINALITY AS m(id, fingerprint, n) ORDER BY m.id, m.n
    ON CONFLICT DO NOTHING RETURNING i.message_id, 'fresh'::text, NULL::integer;
  GET DIAGNOSTICS taken = ROW_COUNT;
  IF taken < cardinality(ids) AND fingerprints IS NOT NULL THEN
    RETURN QUERY
      SELECT i.message_id, 'conflict'::text, m.n::integer
      FROM unnest(ids, fingerprints) WITH ORDINALITY AS m(id, fingerprint, n)
      JOIN "{schema}".inbox AS i ON i.subscriber = inbox_accept.subscriber AND i.message_id = m.id
      WHERE i.fingerprint <> m.fingerprint;
  END IF;
END $$;

-- One message: 'fresh' and from now on known, or 'duplicate' with the stored outcome, or 'conflict'.
CREATE FUNCTION "{schema}".inbox_take(
  subscriber text, message_id text, fingerprint bytea DEFAULT NULL, retention interval DEFAULT NULL)
RETURNS TABLE (verdict text, outcome bytea, received_at timestamptz, stored bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  LOOP  -- Again if the row that stood in the way has just been forgotten.
    INSERT INTO "{schema}".inbox (subscriber, message_id, fingerprint, expires_at)
    VALUES (inbox_take.subscriber, inbox_take.message_id, inbox_take.fingerprint, now() + retention)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      RETURN QUERY SELECT 'fresh'::text, NULL::bytea, clock_timestamp(), inbox_take.fingerprint;
      RETURN;
    END IF;
    RETURN QUERY
      SELECT CASE WHEN i.fingerprint <> inbox_take.fingerprint THEN 'conflict' ELSE 'duplicate' END,
             i.outcome, i.received_at, i.fingerprint
      FROM "{schema}".inbox AS i
      WHERE i.subscriber = inbox_take.subscriber AND i.message_id = inbox_take.message_id;
    IF FOUND THEN
      RETURN;
    END IF;
  END LOOP;
END $$;

-- What duplicates of the message are answered with.
CREATE FUNCTION "{schema}".inbox_outcome(subscriber text, message_id text, outcome bytea)
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  UPDATE "{schema}".inbox AS i SET outcome = inbox_outcome.outcome
  WHERE i.subscriber = inbox_outcome.subscriber AND i.message_id = inbox_outcome.message_id
$$;

-- Work under a key, for one worker at a time. Leases end by the clock of this server. Fences grow.
CREATE SEQUENCE "{schema}".claim_fence;
CREATE TABLE "{schema}".claims (
  scope text NOT NULL,
  key text NOT NULL,
  state text NOT NULL CHECK (state IN ('processing', 'completed', 'failed')),
  owner text NOT NULL,
  fence bigint NOT NULL,
  attempts integer NOT NULL,
  lease_until timestamptz NOT NULL,
  fingerprint bytea,
  outcome bytea,
  reason text,
  first_seen timestamptz NOT NULL,
  settled_at timestamptz,
  expires_at timestamptz,  -- of a settled one; NULL = for ever
  PRIMARY KEY (scope, key)
);
CREATE INDEX claims_expires ON "{schema}".claims (expires_at) WHERE expires_at IS NOT NULL;

-- 'fresh': the caller may work, until lease_until, and shows the fence when it settles.
-- 'duplicate': it is completed, with this outcome. 'in_progress': the holder works. 'conflict'.
CREATE FUNCTION "{schema}".check_and_lock(
  scope text, key text, owner text, lease interval, fingerprint bytea DEFAULT NULL)
RETURNS TABLE (verdict text, fence bigint, attempt integer, lease_until timestamptz, holder text,
  outcome bytea, first_seen timestamptz, settled_at timestamptz, expires_at timestamptz, stored bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  found_claim "{schema}".claims;
  instant timestamptz;
  word text;
BEGIN
  LOOP  -- Again if the claim that stood in the way has just been forgotten.
    instant := clock_timestamp();
    INSERT INTO "{schema}".claims AS c (scope, key, state, owner, fence, attempts, lease_until,
                                        fingerprint, first_seen)
    VALUES (check_and_lock.scope, check_and_lock.key, 'processing', check_and_lock.owner,
            nextval('"{schema}".claim_fence'), 1, instant + lease, check_and_lock.fingerprint, instant)
    ON CONFLICT DO NOTHING RETURNING * INTO found_claim;
    word := 'fresh';
    EXIT WHEN FOUND;
    SELECT * INTO found_claim FROM "{schema}".claims AS c
    WHERE c.scope = check_and_lock.scope AND c.key = check_and_lock.key FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    instant := clock_timestamp();  -- The row may have been locked for long.
    IF found_claim.expires_at <= instant THEN
      found_claim.attempts := 0;
      found_claim.fingerprint := check_and_lock.fingerprint;
      found_claim.first_seen := instant;
    ELSIF found_claim.fingerprint <> check_and_lock.fingerprint THEN
      word := 'conflict';
      EXIT;
    ELSIF found_claim.state = 'completed' THEN
      word := 'duplicate';
      EXIT;
    ELSIF found_claim.state = 'processing' AND found_claim.lease_until > instant THEN
      word := 'in_progress';
      EXIT;
    END IF;
    UPDATE "{schema}".claims AS c SET
      state = 'processing', owner = check_and_lock.owner, fence = nextval('"{schema}".claim_fence'),
      attempts = found_claim.attempts + 1, lease_until = instant + lease,
      fingerprint = coalesce(found_claim.fingerprint, check_and_lock.fingerprint),
      first_seen = found_claim.first_seen, outcome = NULL, settled_at = NULL, expires_at = NULL
    WHERE c.scope = check_and_lock.scope AND c.key = check_and_lock.key
    RETURNING * INTO found_claim;
    EXIT;
  END LOOP;
  RETURN QUERY SELECT word, found_claim.fence, found_claim.attempts, found_claim.lease_until,
    found_claim.owner, found_claim.outcome, found_claim.first_seen, found_claim.settled_at,
    found_claim.expires_at, found_claim.fingerprint;
END $$;

-- 'done', also when repeated; or 'fenced': a later claim of the key is the current one, or none is.
CREATE FUNCTION "{schema}".claim_settle(
  scope text, key text, fence bigint, state text, outcome bytea, reason text, retention interval)
RETURNS TABLE (verdict text, current bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  instant timestamptz := clock_timestamp();
  found_claim "{schema}".claims;
BEGIN
  UPDATE "{schema}".claims AS c SET
    state = claim_settle.state, outcome = claim_settle.outcome, reason = claim_settle.reason,
    settled_at = instant, expires_at = instant + retention
  WHERE c.scope = claim_settle.scope AND c.key = claim_settle.key
    AND c.fence = claim_settle.fence AND c.state = 'processing';
  IF FOUND THEN
    RETURN QUERY SELECT 'done'::text, claim_settle.fence;
    RETURN;
  END IF;
  SELECT * INTO found_claim FROM "{schema}".claims AS c
  WHERE c.scope = claim_settle.scope AND c.key = claim_settle.key;
  RETURN QUERY SELECT
    CASE WHEN found_claim.fence = claim_settle.fence AND found_claim.state = claim_settle.state
         THEN 'done' ELSE 'fenced' END, coalesce(found_claim.fence, 0);
END $$;
CREATE FUNCTION "{schema}".mark_complete(
  scope text, key text, fence bigint, outcome bytea DEFAULT NULL, retention interval DEFAULT NULL)
RETURNS TABLE (verdict text, current bigint) LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM "{schema}".claim_settle(scope, key, fence, 'completed', outcome, NULL, retention)
$$;
-- The key may be claimed again at once; it is forgotten after the retention if nobody does.
CREATE FUNCTION "{schema}".mark_failed(
  scope text, key text, fence bigint, reason text DEFAULT NULL,
  retention interval DEFAULT '30 days')
RETURNS TABLE (verdict text, current bigint) LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM "{schema}".claim_settle(scope, key, fence, 'failed', NULL, reason, retention)
$$;
CREATE FUNCTION "{schema}".renew(scope text, key text, fence bigint, lease interval)
RETURNS TABLE (verdict text, current bigint, lease_until timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY UPDATE "{schema}".claims AS c SET lease_until = clock_timestamp() + lease
    WHERE c.scope = renew.scope AND c.key = renew.key AND c.fence = renew.fence
      AND c.state = 'processing' RETURNING 'done'::text, c.fence, c.lease_until;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'fenced'::text, coalesce((
      SELECT c.fence FROM "{schema}".claims AS c
      WHERE c.scope = renew.scope AND c.key = renew.key), 0), NULL::timestamptz;
  END IF;
END $$;
-- Gives up a claim whose work is recorded elsewhere, in the inbox.
CREATE FUNCTION "{schema}".claim_drop(scope text, key text, fence bigint)
RETURNS TABLE (verdict text, current bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  DELETE FROM "{schema}".claims AS c
  WHERE c.scope = claim_drop.scope AND c.key = claim_drop.key AND c.fence = claim_drop.fence
    AND c.state = 'processing';
  RETURN QUERY SELECT CASE WHEN FOUND THEN 'done' ELSE 'fenced' END, coalesce((
    SELECT c.fence FROM "{schema}".claims AS c
    WHERE c.scope = claim_drop.scope AND c.key = claim_drop.key), 0);
END $$;
CREATE FUNCTION "{schema}".get_status(scope text, key text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT c.state FROM "{schema}".claims AS c
    WHERE c.scope = get_status.scope AND c.key = get_status.key
      AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp())), 'not_seen')
$$;
CREATE FUNCTION "{schema}".is_processed(scope text, key text) RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT "{schema}".get_status(scope, key) = 'completed' $$;

-- Deletes what is over, at most so many rows of each table; 0 also if somebody else is at it.
CREATE FUNCTION "{schema}".forget_expired(most integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  messages bigint;
  settled bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock(1214345336, -1) THEN
    RETURN 0;
  END IF;
  DELETE FROM "{schema}".inbox WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM "{schema}".inbox WHERE expires_at <= now() ORDER BY expires_at LIMIT most
    FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS messages = ROW_COUNT;
  DELETE FROM "{schema}".claims WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM "{schema}".claims WHERE expires_at <= now() ORDER BY expires_at LIMIT most
    FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS settled = ROW_COUNT;
  RETURN messages + settled;
END $$;
