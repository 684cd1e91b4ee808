CREATE TABLE IF NOT EXISTS {prefix}migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (datetime('now')));
