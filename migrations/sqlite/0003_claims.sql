-- Ids that are not filled in are refused; claims may end with an unknown outcome, which a person resolves.
-- {prefix} is replaced. Triggers, because INSERT OR IGNORE passes over what a CHECK refuses.
DROP TRIGGER {prefix}inbox_text;
CREATE TRIGGER {prefix}inbox_text BEFORE INSERT ON {prefix}inbox
WHEN typeof(new.subscriber) = 'blob' OR typeof(new.message_id) = 'blob'
  OR coalesce(new.subscriber, '') = '' OR coalesce(new.message_id, '') = '' BEGIN
  SELECT RAISE(ABORT, 'subscriber and message_id must be text, not a blob')
  WHERE typeof(new.subscriber) = 'blob' OR typeof(new.message_id) = 'blob';
  SELECT RAISE(ABORT, 'HX1001: subscriber or message_id is empty or NULL; every other message without an id would be taken for its duplicate');
END;
CREATE TRIGGER {prefix}outbox_ids BEFORE INSERT ON {prefix}outbox
WHEN coalesce(new.id, '') = '' OR coalesce(new.type, '') = '' OR new.key = '' BEGIN
  SELECT RAISE(ABORT, 'HX1001: the id, the type or the key of an event is empty; only the key may be left out (NULL)');
END;

-- SQLite cannot change a CHECK: the table is made again, with what it holds.
CREATE TEMP TABLE {prefix}claims_kept AS SELECT * FROM {prefix}claims;
DROP TABLE {prefix}claims;
CREATE TABLE {prefix}claims (
  scope TEXT NOT NULL CONSTRAINT "scope must be text, not a blob" CHECK (typeof(scope) = 'text'),
  key TEXT NOT NULL CONSTRAINT "key must be text, not a blob" CHECK (typeof(key) = 'text'),
  state TEXT NOT NULL CHECK (state IN ('processing', 'completed', 'failed', 'unknown')),
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  fingerprint BLOB,
  outcome BLOB,
  reason TEXT,
  first_seen INTEGER NOT NULL,
  settled_at INTEGER,
  expires_at INTEGER,
  on_lapse TEXT NOT NULL DEFAULT 'take_over',  -- what it comes to when its lease runs out; or unknown
  lapsed INTEGER NOT NULL DEFAULT 0,  -- the lease of an earlier owner ran out: it may have done the work
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX {prefix}claims_expires ON {prefix}claims (expires_at) WHERE expires_at IS NOT NULL;
INSERT INTO {prefix}claims (scope, key, state, owner, fence, attempts, lease_until, fingerprint, outcome, reason,
                            first_seen, settled_at, expires_at)
SELECT scope, key, state, owner, fence, attempts, lease_until, fingerprint, outcome, reason, first_seen,
       settled_at, expires_at FROM temp.{prefix}claims_kept;
DROP TABLE temp.{prefix}claims_kept;
CREATE TRIGGER {prefix}claims_ids BEFORE INSERT ON {prefix}claims
WHEN coalesce(new.scope, '') = '' OR coalesce(new.key, '') = '' BEGIN
  SELECT RAISE(ABORT, 'HX1001: the scope or the key of the claim is empty or NULL; all work without one would be taken for the same');
END;

-- What people did to claims, and why.
CREATE TABLE {prefix}claim_audit (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL
    DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  act TEXT NOT NULL,
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL
);
