/** Zod, able to say what belongs into the OpenAPI document. Schemas of this room come from here, so that none is made before it can. */
import { extendZodWithOpenApi } from '@asteasolutions/zod-to-openapi'
import { z } from 'zod'

extendZodWithOpenApi(z)

export { z }
