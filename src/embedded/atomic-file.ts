import { randomBytes } from 'node:crypto'
import { link, open, rename, rm, writeFile } from 'node:fs/promises'

/** Creates a file with its complete text, unless it exists. Of many callers, exactly one gets true. */
export async function createOnce(path: string, text: string): Promise<boolean> {
  const draft = draftOf(path)
  try {
    await writeFile(draft, text, { flush: true })
    await link(draft, path) // unlike rename, this does not replace a file, and unlike 'wx', nobody sees half of it
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** Replaces a file so that a reader sees the old text or the new one, never a part. */
export async function replaceFile(path: string, text: string, options: { mode: number }): Promise<void> {
  const draft = draftOf(path)
  await writeFile(draft, text, options)
  await rename(draft, path)
}

/** Makes the names in a folder survive a power cut, as flushing a file does for its text. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}

function draftOf(path: string): string {
  return `${path}.draft-${randomBytes(4).toString('hex')}`
}
