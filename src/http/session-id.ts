import type { Given } from './operation.ts'

type Asked = Pick<Given, 'door' | 'caller'>

/** The id of a session, as its caller may know it: numbers would tell a tenant how many workers others start. */
export async function showSessionId({ door, caller }: Asked, id: number): Promise<string> {
  return caller.tenant === null ? String(id) : door.seal.seal(`session ${id}`)
}

/** The session that an id means; 0, which is none, if it was not handed to this caller. */
export async function readSessionId(given: Asked & { params: { id: string } }): Promise<number> {
  const { door, caller, params } = given
  const text = caller.tenant === null ? `session ${params.id}` : await door.seal.open(params.id)
  const [, number] = /^session (\d{1,15})$/.exec(text ?? '') ?? []
  return Number(number ?? 0)
}
