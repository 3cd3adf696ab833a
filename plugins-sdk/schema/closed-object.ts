import { type TObject, type TProperties, Type } from 'typebox';

/** Returns the schema of a mapping that forbids other members. */
export function closedObject<P extends TProperties>(members: P, description?: string): TObject<P> {
  return Type.Object(members, { additionalProperties: false, ...(description !== undefined && { description }) });
}
