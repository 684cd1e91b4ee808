-- Where is event X? SELECT * FROM {prefix}outbox_trace WHERE id = 'X'. All of the outbox is looked through. Of an event
-- that was published more than once the highest seq counts. {prefix} is replaced.
-- waiting: not sent yet. taken: a relay that lives has it, or what comes before it. retry: an attempt failed, and it is
-- due at next_at. held: an earlier event of its key waits. sent: it was accepted.
CREATE VIEW {prefix}outbox_trace AS
SELECT o.id, o.seq, 0 AS lane, o.type, o.key, o.created_at,
  CASE WHEN r.taken <> 0 AND l.relay IS NOT NULL THEN 'taken'
       WHEN r.attempts > 0 OR r.next_at IS NOT NULL THEN 'retry'
       WHEN r.n IS NOT NULL THEN 'held'
       WHEN o.seq > l.pos THEN CASE WHEN l.attempts > 0 AND l.relay IS NOT NULL THEN 'taken' ELSE 'waiting' END
       WHEN o.next_seq IS NOT NULL THEN 'published again'
       ELSE 'sent' END AS state,
  coalesce(r.attempts, 0) AS attempts, r.next_at, nullif(r.last_error, '') AS last_error, l.relay,
  NULL AS died_at
FROM (SELECT e.*, lead(e.seq) OVER (PARTITION BY e.id ORDER BY e.seq) AS next_seq FROM {prefix}outbox AS e) AS o
CROSS JOIN (SELECT pos, attempts, CASE WHEN lease_until >
    CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) THEN owner END AS relay
  FROM {prefix}outbox_lane) AS l
LEFT JOIN {prefix}outbox_retry AS r ON r.seq = o.seq
WHERE NOT EXISTS (SELECT 1 FROM {prefix}outbox_dead AS d WHERE d.seq = o.seq)
UNION ALL
SELECT id, seq, NULL, type, key, created_at, 'dead letter', attempts, NULL, reason, NULL, died_at
FROM {prefix}outbox_dead;
