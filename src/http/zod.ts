/** Zod, able to say what belongs into the OpenAPI document. Schemas of this room come from here, so that none is made before it can. */
export { z } from '@hono/zod-openapi'
