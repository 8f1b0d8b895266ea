// Where tests and proofs keep the files of their servers. They create and drop thousands of databases, and some file systems (ext4)
// spend more time on finding free inodes after so many deletes than Postgres spends on the tests. Memory has no such cost.
import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'

const memory = '/dev/shm'
const neededBytes = 6 * 2 ** 30

/** A folder in memory, if there is one with enough room; otherwise the folder for temporary files. TMPDIR overrides both. */
export function scratchFolder() {
  return process.env.TMPDIR || !isRoomy() ? tmpdir() : memory
}

function isRoomy() {
  try {
    accessSync(memory, constants.W_OK | constants.X_OK)
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= neededBytes
  } catch {
    return false
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(scratchFolder())
