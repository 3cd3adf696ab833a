/** Documents that chance makes: the config that is made of them is one that the service takes, or there is none. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { nameOf, unique } from '../../cli/import/names.ts';
import { ConfigErrors } from '../../config/index.ts';
import { anyCharacter } from '../support/any-character.ts';
import { api, fileText, imported, json, loaded } from './documents.ts';

describe('of any document', () => {
  const word = fc.oneof(
    fc.string(),
    fc.string({ unit: anyCharacter }),
    fc.constantFrom('', '__proto__', 'constructor', '$' + '{A}', 'null', '1e3', '- a'),
  );
  const schema = fc.letrec((tie) => ({
    inner: fc.oneof({ maxDepth: 3, depthIdentifier: 'schema' }, fc.constant({}), tie('schema')),
    schema: fc.record(
      {
        type: fc.constantFrom('string', 'integer', 'number', 'boolean', 'array', 'object', 'file', 7, null),
        enum: fc.array(fc.oneof(fc.integer(), word, fc.constant(null)), { maxLength: 3 }),
        default: fc.oneof(word, fc.integer(), fc.boolean()),
        pattern: word,
        minimum: fc.oneof(fc.double(), word),
        exclusiveMinimum: fc.oneof(fc.boolean(), fc.integer()),
        properties: fc.dictionary(word, tie('inner'), { maxKeys: 2 }),
        items: tie('inner'),
        required: fc.oneof(fc.boolean(), fc.array(word, { maxLength: 2 })),
        nullable: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  })).schema;
  const place = fc.constantFrom('query', 'path', 'header', 'cookie', 'body', 'nowhere');
  const parameter = fc.record(
    { name: word, in: place, required: fc.boolean(), schema, description: word },
    { requiredKeys: ['name', 'in'] },
  );
  const operation = fc.record(
    {
      operationId: word,
      summary: word,
      parameters: fc.array(parameter, { maxLength: 3 }),
      requestBody: schema.map(json),
      responses: schema.map((each) => ({ 200: json(each) })),
    },
    { requiredKeys: [] },
  );
  const paths = fc.dictionary(
    word.map((text) => `/${text}`),
    fc.dictionary(fc.constantFrom('get', 'post', 'head'), operation),
    { maxKeys: 3 },
  );

  it('what is made is a config that the service takes, the same each time, and loses no operation silently', async () => {
    await fc.assert(
      fc.asyncProperty(paths, async (each) => {
        const tree = () => JSON.parse(JSON.stringify(api(each)));
        const made = await imported(tree()).catch((error: Error) => error.message);
        if (typeof made === 'string') return;
        const whole = made.leftOut.filter(({ what }) => what === undefined);
        const known = made.apis.flatMap(({ endpoints }) => endpoints).length + whole.length;
        assert.ok(known >= Object.values(each).flatMap(Object.keys).length);
        if (made.apis.length === 0) return;
        const text = fileText(made);
        try {
          await loaded(text);
        } catch (error) {
          // Its file would not be written.
          if (!(error instanceof ConfigErrors) || !/__proto__/.test(error.message)) throw error;
        }
        assert.equal(fileText(await imported(tree())), text);
      }),
      { numRuns: 18 },
    );
  });

  it('names are plain, and no two are alike', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 20 }), (texts) => {
        const taken = new Set<string>();
        const names = texts.map((text) => unique(nameOf(text, 'endpoint'), taken));
        assert.equal(new Set(names.map((name) => name.toLowerCase())).size, texts.length);
        for (const name of names) assert.match(name, /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,70}$/);
      }),
    );
  });
});
