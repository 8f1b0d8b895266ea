import type { Call } from './operation.ts'

type Asked = Pick<Call, 'gateway' | 'caller'>

/** The id of a session, as shown to its caller: plain numbers would tell a tenant how many workers others start. */
export async function showSessionId({ gateway, caller }: Asked, id: number): Promise<string> {
  return caller.tenant === null ? String(id) : gateway.cursorTokens.seal(`session ${id}`)
}

/** The session that an id stands for; 0, which is not a session, if the id was not given to this caller. */
export async function readSessionId(call: Asked & { params: { id: string } }): Promise<number> {
  const { gateway, caller, params } = call
  const text = caller.tenant === null ? `session ${params.id}` : await gateway.cursorTokens.open(params.id)
  const [, number] = /^session (\d{1,15})$/.exec(text ?? '') ?? []
  return Number(number ?? 0)
}
