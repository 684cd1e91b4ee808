-- The outbox, the inbox and claims. {prefix} is replaced. Times are milliseconds since 1970.
-- What rows are found by is text: the same bytes as a blob are another value, which equals no text.

-- Writers go one by one here, so the order of seq is the order of commits. AUTOINCREMENT: a number is
-- not used again after its row was deleted.
CREATE TABLE {prefix}outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT "id must be text, not a blob" CHECK (typeof(id) = 'text'),
  type TEXT NOT NULL CHECK (length(CAST(type AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT "type must be text, not a blob" CHECK (typeof(type) = 'text'),
  key TEXT CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT "key must be text, not a blob" CHECK (typeof(key) IN ('text', 'null')),
  payload BLOB NOT NULL
    CHECK (typeof(payload) IN ('blob', 'text') AND length(CAST(payload AS BLOB)) <= 8388608),
  headers TEXT CHECK (json_type(headers) = 'array'),
  correlation_id TEXT,
  causation_id TEXT,
  created_at INTEGER NOT NULL
    DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
);

-- Each header is a pair of strings; a CHECK cannot look at each.
CREATE TRIGGER {prefix}outbox_headers BEFORE INSERT ON {prefix}outbox
WHEN json_type(new.headers) = 'array' BEGIN
  SELECT RAISE(ABORT, 'headers are an array of pairs of strings') FROM json_each(new.headers) AS h
  WHERE CASE WHEN h.type = 'array' THEN json_array_length(h.value) = 2
               AND json_type(h.value, '$[0]') = 'text' AND json_type(h.value, '$[1]') = 'text'
             ELSE false END IS NOT true;
END;

CREATE TABLE {prefix}inbox (
  subscriber TEXT NOT NULL
    CONSTRAINT "subscriber must be text, not a blob" CHECK (typeof(subscriber) = 'text'),
  message_id TEXT NOT NULL
    CONSTRAINT "message_id must be text, not a blob" CHECK (typeof(message_id) = 'text'),
  fingerprint BLOB,
  received_at INTEGER NOT NULL
    DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  expires_at INTEGER,
  outcome BLOB,
  PRIMARY KEY (subscriber, message_id)
) WITHOUT ROWID;
CREATE INDEX {prefix}inbox_expires ON {prefix}inbox (expires_at) WHERE expires_at IS NOT NULL;

-- INSERT OR IGNORE passes over what a CHECK refuses: a new message would look like a duplicate.
CREATE TRIGGER {prefix}inbox_text BEFORE INSERT ON {prefix}inbox
WHEN typeof(new.subscriber) = 'blob' OR typeof(new.message_id) = 'blob' BEGIN
  SELECT RAISE(ABORT, 'subscriber and message_id must be text, not a blob');
END;

CREATE TABLE {prefix}claims (
  scope TEXT NOT NULL CONSTRAINT "scope must be text, not a blob" CHECK (typeof(scope) = 'text'),
  key TEXT NOT NULL CONSTRAINT "key must be text, not a blob" CHECK (typeof(key) = 'text'),
  state TEXT NOT NULL CHECK (state IN ('processing', 'completed', 'failed')),
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
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX {prefix}claims_expires ON {prefix}claims (expires_at) WHERE expires_at IS NOT NULL;

-- The latest fence: it grows although claims are forgotten.
CREATE TABLE {prefix}claim_fence (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), fence INTEGER NOT NULL);
INSERT INTO {prefix}claim_fence VALUES (1, 0);
