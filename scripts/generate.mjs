// `npm run generate`: writes every file that is derived from code.
import { follow } from './follow.mjs'
import { generators } from './generators.mjs'
import { main, setup } from './setup.mjs'

await main(async () => {
  setup()
  for (const script of generators()) {
    const code = await follow([script])
    if (code !== 0) return code
  }
  return 0
})
