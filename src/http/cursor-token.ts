import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto'

/**
 * Seals positions in lists and in the event log before they are given to clients. A bare number or id would tell a tenant how much others do,
 * and a client that could make one up could ask for positions it was never given.
 */
export interface CursorTokens {
  seal(text: string): Promise<string>
  /** The sealed text; null if the token was not made here. */
  open(token: string): Promise<string | null>
}

const cipher = 'aes-256-gcm'
const ivLength = 12
const tagLength = 16

/** Makes tokens with a secret, which is read when first needed. */
export function makeCursorTokens(secret: () => Promise<Buffer>): CursorTokens {
  let key: Promise<Buffer> | undefined
  const keyed = () => {
    key ??= secret().then((bytes) => createHash('sha256').update('places').update(bytes).digest())
    // ask again if the database was unreachable
    key.catch(() => {
      key = undefined
    })
    return key
  }
  return {
    async seal(text) {
      const own = await keyed()
      // derived from the text, so that the same position always has the same token, and no two texts share a nonce
      const iv = createHmac('sha256', own).update(text).digest().subarray(0, ivLength)
      const sealing = createCipheriv(cipher, own, iv)
      const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
      return Buffer.concat([iv, sealing.getAuthTag(), sealed]).toString('base64url')
    },
    async open(token) {
      const bytes = Buffer.from(token, 'base64url')
      if (bytes.length <= ivLength + tagLength) return null
      const opening = createDecipheriv(cipher, await keyed(), bytes.subarray(0, ivLength), { authTagLength: tagLength })
      opening.setAuthTag(bytes.subarray(ivLength, ivLength + tagLength))
      try {
        return Buffer.concat([opening.update(bytes.subarray(ivLength + tagLength)), opening.final()]).toString('utf8')
      } catch {
        return null
      }
    },
  }
}

/** The same tokens for one tenant only: a token that was given to another tenant does not open. */
export function cursorTokensOf(cursorTokens: CursorTokens, tenant: string | null): CursorTokens {
  const mark = `${tenant ?? '*'} `
  return {
    seal: (text) => cursorTokens.seal(mark + text),
    async open(token) {
      const text = await cursorTokens.open(token)
      return text?.startsWith(mark) ? text.slice(mark.length) : null
    },
  }
}
