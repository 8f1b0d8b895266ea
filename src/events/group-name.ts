import { HoldfastError } from '../errors/errors.ts'
import { isName, nameForm } from '../job/names.ts'

/** The group of readers that plans webhooks. */
export const webhookGroup = 'webhooks'

/** The name of a group; throws group_invalid if it is not one. */
export function groupNameOf(group: string): string {
  if (isName(group)) return group
  throw new HoldfastError('group_invalid', `${JSON.stringify(group)} is not a valid group name: use ${nameForm}.`)
}

/** The name of a group that callers may use; throws group_invalid for the group of the webhooks. */
export function ownGroupNameOf(group: string): string {
  if (group !== webhookGroup) return groupNameOf(group)
  throw new HoldfastError('group_invalid', `The group name ${webhookGroup} is reserved for webhooks; choose another.`)
}
