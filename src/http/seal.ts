import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto'

/**
 * Places in lists and in the log, as they are handed out: sealed, because a bare number or id would tell a tenant how much others do, and
 * whoever could make one up could ask for places that nobody gave them.
 */
export interface Seal {
  seal(text: string): Promise<string>
  /** The text; null if it was not sealed here. */
  open(token: string): Promise<string | null>
}

const cipher = 'aes-256-gcm'
const ivLength = 12
const tagLength = 16

/** Makes a seal of a secret, which is read when first needed. */
export function makeSeal(secret: () => Promise<Buffer>): Seal {
  let key: Promise<Buffer> | undefined
  const keyed = () => {
    key ??= secret().then((bytes) => createHash('sha256').update('places').update(bytes).digest())
    // a database that was away is asked again
    key.catch(() => {
      key = undefined
    })
    return key
  }
  return {
    async seal(text) {
      const own = await keyed()
      // made of the text, so that the same place has the same name however often it is shown, and no two texts share one
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

/** The same seal, but for one tenant alone: a place that was handed to another is as good as made up. */
export function sealOf(seal: Seal, tenant: string | null): Seal {
  const mark = `${tenant ?? '*'} `
  return {
    seal: (text) => seal.seal(mark + text),
    async open(token) {
      const text = await seal.open(token)
      return text?.startsWith(mark) ? text.slice(mark.length) : null
    },
  }
}
