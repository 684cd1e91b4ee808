-- What relays know. One relay sends at a time; {prefix} is replaced. Times are milliseconds since
-- 1970.
CREATE TABLE {prefix}outbox_lane (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  owner TEXT,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  pos INTEGER NOT NULL,      -- sent is every row with seq <= pos
  sent INTEGER NOT NULL,     -- so many were accepted since the lane exists
  attempts INTEGER NOT NULL, -- how often what follows was taken and not settled
  moved_at INTEGER NOT NULL  -- since when fence, pos and sent are what they are
);
INSERT INTO {prefix}outbox_lane VALUES (1, NULL, 0, 0, 0, 0, 0, 0);

-- Rows that wait for another attempt, and behind them the later ones of their keys. The first of a
-- key, and every row without a key, has next_at; the others get it when they become the first.
CREATE TABLE {prefix}outbox_retry (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  seq INTEGER NOT NULL UNIQUE,
  key TEXT,
  attempts INTEGER NOT NULL,
  next_at INTEGER,
  taken INTEGER NOT NULL DEFAULT 0,  -- still 1 at the next taking: whoever had it died
  last_error TEXT NOT NULL
);
CREATE INDEX {prefix}outbox_retry_due ON {prefix}outbox_retry (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX {prefix}outbox_retry_key ON {prefix}outbox_retry (key, n);

-- The whole record, because the outbox forgets it.
CREATE TABLE {prefix}outbox_dead (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  key TEXT,
  payload BLOB NOT NULL,
  headers TEXT,
  correlation_id TEXT,
  causation_id TEXT,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  reason TEXT NOT NULL,
  died_at INTEGER NOT NULL
    DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
);
