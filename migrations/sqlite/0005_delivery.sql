-- Names these tables, for keys of deliveries: a copy of the file keeps it, so a record has the same key there. {prefix}
-- is replaced.
CREATE TABLE {prefix}outbox_uid (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  uid TEXT NOT NULL
);
INSERT INTO {prefix}outbox_uid
SELECT 1, substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-a' || substr(h, 18, 3) || '-' ||
  substr(h, 21, 12)
FROM (SELECT lower(hex(randomblob(16))) AS h);

-- When the first attempt was of a record that waits for another one; NULL: there was none.
ALTER TABLE {prefix}outbox_retry ADD COLUMN tried_at INTEGER;
