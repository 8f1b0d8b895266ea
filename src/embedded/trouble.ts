import { HoldfastError } from '../errors/errors.ts'

const noSpace = /No space left on device|Disk quota exceeded/
const noProgram = /error while loading shared libraries|Library not loaded|symbol not found|not found: required by/

/** The error of a failed start as one that says what happened, to which folder, and what to do. */
export function explain(error: unknown, folder: string): unknown {
  if (error instanceof HoldfastError) return error
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall?.startsWith('spawn')) return cannotRun(error)
  const sentence = sentences[code ?? '']
  if (!sentence) return error
  return new HoldfastError('data_folder_unusable', `${sentence} (data folder ${folder})`, { cause: error })
}

/** The error for a Postgres program that failed, from its output. */
export function explainOutput(what: string, output: string, folder: string): HoldfastError {
  if (noSpace.test(output))
    return new HoldfastError('data_folder_unusable', `${sentences.ENOSPC} (data folder ${folder})`)
  if (noProgram.test(output)) return cannotRun(new Error(output.trim()))
  const tail = output.trim().split('\n').slice(-20).join('\n')
  const words = tail ? `Its last words:\n${tail}` : 'It said nothing, so it was probably killed; start it again.'
  return new HoldfastError('embedded_start_failed', `${what} ${words}`, { details: { folder } })
}

const noRights =
  'There is no right to write in the data folder. Give it to the user that runs Holdfast, or choose another folder.'
const notThere = 'The data folder cannot be made, because a file is in its way. Choose another folder.'
const full = 'The disk of the data folder is full. Free some space, or choose a folder on another disk.'

const sentences: Record<string, string> = {
  EACCES: noRights,
  EPERM: noRights,
  EROFS: 'The data folder is on a read-only file system. Choose another folder.',
  ENOTDIR: notThere,
  EEXIST: notThere,
  ENOSPC: full,
  EDQUOT: full,
}

// a missing interpreter also shows as ENOENT: the programs need glibc, which Alpine Linux lacks
function cannotRun(cause: unknown): HoldfastError {
  return new HoldfastError(
    'embedded_unavailable',
    'The embedded Postgres cannot be run on this system: it lacks a library that the programs need (they are built for ' +
      'glibc), or forbids programs where they are installed. Give Holdfast the URL of a Postgres server instead.',
    { cause },
  )
}
