-- Ids that are not filled in are refused; claims may end with an unknown outcome, which a person resolves;
-- a retention can be given to what is remembered already. {schema} is replaced by the name of the schema.

-- Raises HX1001. A word of SQLSTATE has five characters, so the number is in the text, too.
CREATE FUNCTION "{schema}".refuse(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'HX1001: %', what USING ERRCODE = 'HX001';
END $$;

-- Raises if a message may not be recorded: an id that somebody forgot to fill in would make every other one
-- like it a duplicate.
CREATE FUNCTION "{schema}".inbox_check(subscriber text, message_id text, retention interval)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (subscriber <> '') IS NOT TRUE THEN
    PERFORM "{schema}".refuse('the subscriber is empty or NULL; give it a name');
  ELSIF (message_id <> '') IS NOT TRUE THEN
    PERFORM "{schema}".refuse('the message id is empty or NULL: every other message without one would be '
      'taken for its duplicate; give each message an id of its own');
  ELSIF retention < interval '0' THEN
    PERFORM "{schema}".refuse(format('the retention is %s; it is not negative, and NULL is forever',
                                     retention));
  END IF;
END $$;

-- Takes those of the messages that are new, and answers them as 'fresh'; a known id with another
-- fingerprint is answered as 'conflict', with its place in the arrays, from 1 on. Duplicates are not
-- answered. Of an id that is there more than once the first place is the one that is new: to answer that
-- place as well would cost a tenth. Sorted, so that two batches with the same messages never wait for
-- each other.
CREATE OR REPLACE FUNCTION "{schema}".inbox_accept(
  subscriber text, ids text[], fingerprints bytea[] DEFAULT NULL, retention interval DEFAULT NULL)
RETURNS TABLE (message_id text, verdict text, place integer) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  expires timestamptz := now() + retention;
  taken bigint;
BEGIN
  IF (inbox_accept.subscriber <> '') IS NOT TRUE OR retention < interval '0'
      OR array_position(ids, '') IS NOT NULL OR array_position(ids, NULL) IS NOT NULL THEN
    PERFORM "{schema}".inbox_check(inbox_accept.subscriber, '', retention);
  ELSIF cardinality(fingerprints) <> cardinality(ids) THEN
    PERFORM "{schema}".refuse(format('there are %s fingerprints for %s ids; give one for each id, or none '
      'at all', cardinality(fingerprints), cardinality(ids)));
  END IF;
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
CREATE OR REPLACE FUNCTION "{schema}".inbox_take(
  subscriber text, message_id text, fingerprint bytea DEFAULT NULL, retention interval DEFAULT NULL)
RETURNS TABLE (verdict text, outcome bytea, received_at timestamptz, stored bytea)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM "{schema}".inbox_check(inbox_take.subscriber, inbox_take.message_id, retention);
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

-- NOT VALID, because the rule only got wider: nothing that is there has to be read while others wait.
ALTER TABLE "{schema}".claims DROP CONSTRAINT claims_state_check;
ALTER TABLE "{schema}".claims ADD CONSTRAINT claims_state_check
  CHECK (state IN ('processing', 'completed', 'failed', 'unknown')) NOT VALID;
-- What the claim comes to when its lease runs out.
ALTER TABLE "{schema}".claims ADD COLUMN on_lapse text NOT NULL DEFAULT 'take_over';
-- The lease of an earlier owner ran out: it may have done the work.
ALTER TABLE "{schema}".claims ADD COLUMN lapsed boolean NOT NULL DEFAULT false;

-- What people did to claims, and why.
CREATE TABLE "{schema}".claim_audit (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  act text NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL
);

CREATE FUNCTION "{schema}".claim_check(scope text, key text, lease interval, retention interval)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (scope <> '') IS NOT TRUE OR (key <> '') IS NOT TRUE THEN
    PERFORM "{schema}".refuse(format('the %s of the claim is empty or NULL: all work without one would be '
      'taken for the same; give it', CASE WHEN (scope <> '') IS TRUE THEN 'key' ELSE 'scope' END));
  ELSIF (lease > interval '0') IS NOT TRUE THEN
    PERFORM "{schema}".refuse(format('the lease is %s; it must be positive',
                                     coalesce(lease::text, 'NULL')));
  ELSIF retention < interval '0' THEN
    PERFORM "{schema}".refuse(format('the retention is %s; it is not negative, and NULL is forever',
                                     retention));
  END IF;
END $$;

-- 'fresh': the caller may work, until lease_until, and shows the fence when it settles. `former` tells what
-- became of earlier owners: NULL = there was none, 'failed' = nothing happened, 'lapsed' = the lease of one
-- ran out, and it may have done the work.
-- 'duplicate': it is completed, with this outcome. 'in_progress': the holder works. 'conflict'.
-- 'unknown': it may have been done, and nobody does it again before it is resolved. So it is also if a
-- lease ran out and the claim or this caller says on_lapse => 'unknown'.
DROP FUNCTION "{schema}".check_and_lock(text, text, text, interval, bytea);
CREATE FUNCTION "{schema}".check_and_lock(
  scope text, key text, owner text, lease interval, fingerprint bytea DEFAULT NULL,
  on_lapse text DEFAULT 'take_over')
RETURNS TABLE (verdict text, fence bigint, attempt integer, lease_until timestamptz, holder text,
  outcome bytea, first_seen timestamptz, settled_at timestamptz, expires_at timestamptz, stored bytea,
  former text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  found_claim "{schema}".claims;
  instant timestamptz;
  word text;
  before text;
BEGIN
  PERFORM "{schema}".claim_check(check_and_lock.scope, check_and_lock.key, lease, NULL);
  IF (check_and_lock.on_lapse IN ('take_over', 'unknown')) IS NOT TRUE THEN
    PERFORM "{schema}".refuse(format('on_lapse is %L; it is take_over or unknown',
                                     check_and_lock.on_lapse));
  END IF;
  LOOP  -- Again if the claim that stood in the way has just been forgotten.
    instant := clock_timestamp();
    INSERT INTO "{schema}".claims AS c (scope, key, state, owner, fence, attempts, lease_until,
                                        fingerprint, first_seen, on_lapse)
    VALUES (check_and_lock.scope, check_and_lock.key, 'processing', check_and_lock.owner,
            nextval('"{schema}".claim_fence'), 1, instant + lease, check_and_lock.fingerprint, instant,
            check_and_lock.on_lapse)
    ON CONFLICT DO NOTHING RETURNING * INTO found_claim;
    word := 'fresh';
    EXIT WHEN FOUND;
    SELECT * INTO found_claim FROM "{schema}".claims AS c
    WHERE c.scope = check_and_lock.scope AND c.key = check_and_lock.key FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    instant := clock_timestamp();  -- The row may have been locked for long.
    IF found_claim.expires_at <= instant THEN
      found_claim.attempts := 0;
      found_claim.fingerprint := NULL;
      found_claim.first_seen := instant;
      found_claim.lapsed := false;
    ELSIF found_claim.state = 'failed' THEN  -- It did not happen, so its key is free for other content.
      found_claim.fingerprint := NULL;
      before := 'failed';
    ELSIF found_claim.fingerprint <> check_and_lock.fingerprint THEN
      word := 'conflict';
      EXIT;
    ELSIF found_claim.state = 'completed' THEN
      word := 'duplicate';
      EXIT;
    ELSIF found_claim.state = 'unknown' THEN
      word := 'unknown';
      EXIT;
    ELSIF found_claim.lease_until > instant THEN
      word := 'in_progress';
      EXIT;
    ELSIF 'unknown' IN (found_claim.on_lapse, check_and_lock.on_lapse) THEN
      UPDATE "{schema}".claims AS c SET state = 'unknown', settled_at = c.lease_until,
        reason = "{schema}".lapse_text(c.owner, c.lease_until)
      WHERE c.scope = check_and_lock.scope AND c.key = check_and_lock.key
      RETURNING * INTO found_claim;
      word := 'unknown';
      EXIT;
    ELSE
      found_claim.lapsed := true;
    END IF;
    IF found_claim.lapsed THEN
      before := 'lapsed';
    END IF;
    UPDATE "{schema}".claims AS c SET
      state = 'processing', owner = check_and_lock.owner, fence = nextval('"{schema}".claim_fence'),
      attempts = found_claim.attempts + 1, lease_until = instant + lease,
      fingerprint = coalesce(found_claim.fingerprint, check_and_lock.fingerprint),
      first_seen = found_claim.first_seen, outcome = NULL, reason = NULL, settled_at = NULL,
      expires_at = NULL, on_lapse = check_and_lock.on_lapse, lapsed = found_claim.lapsed
    WHERE c.scope = check_and_lock.scope AND c.key = check_and_lock.key
    RETURNING * INTO found_claim;
    EXIT;
  END LOOP;
  RETURN QUERY SELECT word, found_claim.fence, found_claim.attempts, found_claim.lease_until,
    found_claim.owner, found_claim.outcome, found_claim.first_seen, found_claim.settled_at,
    found_claim.expires_at, found_claim.fingerprint, before, found_claim.reason;
END $$;

CREATE FUNCTION "{schema}".lapse_text(owner text, lease_until timestamptz) RETURNS text LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('the lease of owner ''%s'' ran out at %s before the owner settled; it may have done the work',
    owner, to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
$$;

-- 'done', also when repeated; or 'fenced': a later claim of the key is the current one, or none is. Whoever
-- holds the fence knows best what became of the work, also after it said something else: only 'completed'
-- is final.
CREATE OR REPLACE FUNCTION "{schema}".claim_settle(
  scope text, key text, fence bigint, state text, outcome bytea, reason text, retention interval)
RETURNS TABLE (verdict text, current bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  instant timestamptz := clock_timestamp();
  found_claim "{schema}".claims;
BEGIN
  PERFORM "{schema}".claim_check(claim_settle.scope, claim_settle.key, interval '1 s', retention);
  UPDATE "{schema}".claims AS c SET
    state = claim_settle.state, outcome = claim_settle.outcome, reason = claim_settle.reason,
    settled_at = instant, expires_at = instant + retention
  WHERE c.scope = claim_settle.scope AND c.key = claim_settle.key
    AND c.fence = claim_settle.fence AND c.state NOT IN ('completed', claim_settle.state)
    AND (c.expires_at IS NULL OR c.expires_at > instant);
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
-- The work may have been done or not: the key is held until somebody resolves it.
CREATE FUNCTION "{schema}".mark_unknown(scope text, key text, fence bigint, reason text DEFAULT NULL)
RETURNS TABLE (verdict text, current bigint) LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM "{schema}".claim_settle(scope, key, fence, 'unknown', NULL, reason, NULL)
$$;
CREATE OR REPLACE FUNCTION "{schema}".renew(scope text, key text, fence bigint, lease interval)
RETURNS TABLE (verdict text, current bigint, lease_until timestamptz) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM "{schema}".claim_check(renew.scope, renew.key, lease, NULL);
  RETURN QUERY UPDATE "{schema}".claims AS c SET lease_until = clock_timestamp() + lease
    WHERE c.scope = renew.scope AND c.key = renew.key AND c.fence = renew.fence
      AND c.state = 'processing' RETURNING 'done'::text, c.fence, c.lease_until;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'fenced'::text, coalesce((
      SELECT c.fence FROM "{schema}".claims AS c
      WHERE c.scope = renew.scope AND c.key = renew.key), 0), NULL::timestamptz;
  END IF;
END $$;
-- Gives up a claim in progress, as if the key had never been claimed.
CREATE OR REPLACE FUNCTION "{schema}".claim_drop(scope text, key text, fence bigint)
RETURNS TABLE (verdict text, current bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM "{schema}".claim_check(claim_drop.scope, claim_drop.key, interval '1 s', NULL);
  DELETE FROM "{schema}".claims AS c
  WHERE c.scope = claim_drop.scope AND c.key = claim_drop.key AND c.fence = claim_drop.fence
    AND c.state = 'processing';
  RETURN QUERY SELECT CASE WHEN FOUND THEN 'done' ELSE 'fenced' END, coalesce((
    SELECT c.fence FROM "{schema}".claims AS c
    WHERE c.scope = claim_drop.scope AND c.key = claim_drop.key), 0);
END $$;

-- What an act of a person on a claim needs: who, and why. Answers the claim, locked.
CREATE FUNCTION "{schema}".claim_for_act(
  act text, scope text, key text, actor text, reason text) RETURNS "{schema}".claims LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  found_claim "{schema}".claims;
BEGIN
  IF (actor <> '') IS NOT TRUE OR (reason <> '') IS NOT TRUE THEN
    PERFORM "{schema}".refuse(format('claim %s/%s was left as it is: the act is audited and needs an actor '
      'and a reason', claim_for_act.scope, claim_for_act.key));
  END IF;
  SELECT * INTO found_claim FROM "{schema}".claims AS c
  WHERE c.scope = claim_for_act.scope AND c.key = claim_for_act.key
    AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp()) FOR UPDATE;
  INSERT INTO "{schema}".claim_audit (act, scope, key, actor, reason)
  VALUES (act, claim_for_act.scope, claim_for_act.key, actor, claim_for_act.reason);
  RETURN found_claim;
END $$;
-- Decides what became of work whose outcome is unknown: 'completed' (duplicates get the outcome), 'not_applied'
-- (the key may be claimed again) or 'release' (as if it had never been claimed).
CREATE FUNCTION "{schema}".resolve(
  scope text, key text, resolution text, actor text, reason text, outcome bytea DEFAULT NULL,
  retention interval DEFAULT NULL) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  found_claim "{schema}".claims;
  standing text;
BEGIN
  PERFORM "{schema}".claim_check(resolve.scope, resolve.key, interval '1 s', retention);
  IF (resolution IN ('completed', 'not_applied', 'release')) IS NOT TRUE THEN
    PERFORM "{schema}".refuse(format('the resolution is %L; it is completed, not_applied or release',
                                     resolution));
  END IF;
  found_claim := "{schema}".claim_for_act(
    CASE resolution WHEN 'completed' THEN 'resolve-completed' WHEN 'not_applied' THEN 'resolve-not-applied'
    ELSE 'release' END, resolve.scope, resolve.key, actor, resolve.reason);
  standing := "{schema}".get_status(resolve.scope, resolve.key);
  IF standing <> 'unknown' THEN
    RAISE EXCEPTION 'HX1012: claim %/% is % with fence %; only an unknown outcome can be resolved',
      resolve.scope, resolve.key, standing, coalesce(found_claim.fence, 0) USING ERRCODE = 'HX012';
  END IF;
  IF resolution = 'release' THEN
    DELETE FROM "{schema}".claims AS c WHERE c.scope = resolve.scope AND c.key = resolve.key;
  ELSE
    UPDATE "{schema}".claims AS c SET
      state = CASE resolution WHEN 'completed' THEN 'completed' ELSE 'failed' END,
      outcome = CASE resolution WHEN 'completed' THEN resolve.outcome END, reason = resolve.reason,
      settled_at = clock_timestamp(), expires_at = clock_timestamp() + CASE resolution
        WHEN 'completed' THEN retention ELSE coalesce(retention, interval '30 days') END
    WHERE c.scope = resolve.scope AND c.key = resolve.key;
  END IF;
  RETURN 'done';
END $$;
-- Removes a key in any state, as if it had never been claimed. Its holder is fenced.
CREATE FUNCTION "{schema}".forget(scope text, key text, actor text, reason text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  found_claim "{schema}".claims;
BEGIN
  PERFORM "{schema}".claim_check(forget.scope, forget.key, interval '1 s', NULL);
  found_claim := "{schema}".claim_for_act('forget', forget.scope, forget.key, actor, forget.reason);
  IF found_claim.key IS NULL THEN
    RAISE EXCEPTION 'HX1003: claim %/% is not known', forget.scope, forget.key USING ERRCODE = 'HX003';
  END IF;
  DELETE FROM "{schema}".claims AS c WHERE c.scope = forget.scope AND c.key = forget.key;
  RETURN 'done';
END $$;

-- not_seen, processing, completed, failed or unknown. A lease that ran out may make the outcome unknown
-- before anybody claims the key again.
CREATE OR REPLACE FUNCTION "{schema}".get_status(scope text, key text) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((
    SELECT CASE WHEN c.state = 'processing' AND c.on_lapse = 'unknown'
                  AND c.lease_until <= clock_timestamp() THEN 'unknown' ELSE c.state END
    FROM "{schema}".claims AS c
    WHERE c.scope = get_status.scope AND c.key = get_status.key
      AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp())), 'not_seen')
$$;
CREATE OR REPLACE FUNCTION "{schema}".is_processed(scope text, key text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT "{schema}".get_status(scope, key) = 'completed'
$$;

-- Deletes what is over, at most so many rows of each table; 0 also if somebody else is at it. With the
-- rights of the owner, as relay_clean(): relays call it, and it takes nothing but what is over.
CREATE OR REPLACE FUNCTION "{schema}".forget_expired(most integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- Gives the ids that a subscriber has taken a retention, from when they were received on: also to those that
-- were to stay forever. At most so many, behind the id `behind`; answers the last one that it looked at,
-- NULL = there is none any more. Call it again with that, each time in a transaction of its own.
CREATE FUNCTION "{schema}".inbox_retain(
  subscriber text, retention interval, behind text DEFAULT '', most integer DEFAULT 1000)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  last text;
BEGIN
  PERFORM "{schema}".inbox_check(inbox_retain.subscriber, 'any', retention);
  SELECT max(few.message_id) INTO last FROM (
    SELECT i.message_id FROM "{schema}".inbox AS i
    WHERE i.subscriber = inbox_retain.subscriber AND i.message_id > behind
    ORDER BY i.message_id LIMIT most) AS few;
  UPDATE "{schema}".inbox AS i SET expires_at = i.received_at + retention
  WHERE i.subscriber = inbox_retain.subscriber AND i.message_id > behind AND i.message_id <= last
    AND i.expires_at IS DISTINCT FROM i.received_at + retention;
  RETURN last;
END $$;
-- The same for the completed claims of a scope, from when they were settled on.
CREATE FUNCTION "{schema}".claims_retain(
  scope text, retention interval, behind text DEFAULT '', most integer DEFAULT 1000)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  last text;
BEGIN
  PERFORM "{schema}".claim_check(claims_retain.scope, 'any', interval '1 s', retention);
  SELECT max(few.key) INTO last FROM (
    SELECT c.key FROM "{schema}".claims AS c
    WHERE c.scope = claims_retain.scope AND c.key > behind ORDER BY c.key LIMIT most) AS few;
  UPDATE "{schema}".claims AS c SET expires_at = c.settled_at + retention
  WHERE c.scope = claims_retain.scope AND c.key > behind AND c.key <= last AND c.state = 'completed'
    AND c.expires_at IS DISTINCT FROM c.settled_at + retention;
  RETURN last;
END $$;
