-- Bytes: payloads of artifacts, and content.

-- name: keep_payload
-- These are the bytes of the digest. The same bytes again replace what may have been damaged.
INSERT INTO payloads (scope, digest, size, data, upload, file) VALUES (:scope, :digest, :size, :data, :upload, :file)
ON CONFLICT (scope, digest) DO UPDATE
SET size = excluded.size, data = excluded.data, upload = excluded.upload, file = excluded.file;

-- name: payload
-- Where are the bytes of the digest?
SELECT size, data, upload, file FROM payloads WHERE scope = :scope AND digest = :digest;

-- name: drop_payload
-- Nobody needs the bytes any more.
DELETE FROM payloads WHERE scope = :scope AND digest = :digest;

-- name: keep_chunk
-- A piece of an upload.
INSERT INTO payload_chunks (upload, chunk, data) VALUES (:upload, :chunk, :data);

-- name: chunk
-- A piece of an upload.
SELECT data FROM payload_chunks WHERE upload = :upload AND chunk = :chunk;

-- name: drop_chunks
-- Nobody needs the upload any more.
DELETE FROM payload_chunks WHERE upload = :upload;

-- name: stale_uploads
-- Which uploads were begun long ago, and nothing links to them?
SELECT DISTINCT c.upload
FROM payload_chunks AS c
WHERE c.upload < :before
    AND NOT EXISTS (SELECT 1 FROM payloads AS p WHERE p.upload = c.upload)
LIMIT 16;

-- name: links_to_upload
-- Does a payload live under this upload?
SELECT 1 FROM payloads WHERE upload = :upload LIMIT 1;

-- name: links_to_file
-- Does a payload live in this file?
SELECT 1 FROM payloads WHERE file = :file LIMIT 1;

-- name: keep_content
-- A text, once a scope and digest.
INSERT INTO content (scope, digest, data) VALUES (:scope, :digest, :data)
ON CONFLICT (scope, digest) DO NOTHING;

-- name: content
-- The text of a digest.
SELECT data FROM content WHERE scope = :scope AND digest = :digest;
