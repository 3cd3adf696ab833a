/** Most words of a sentence. Semicolons and colons do not end one. */
const MAX = 25;

/** "What fails is run again" hides its subject. Questions, sentences with a colon and cells of tables may begin in this way. */
const HIDDEN_SUBJECT = /^(?:What|Who|Whom)(?:ever)?\b[^:]*\.$/;
/** Docstrings of types and fields begin with a noun phrase, without a verb. */
const GENERATED = /docs\/sdk\.md$/;

/** Returns the text of a node. A span of code is one word, and a line break is a space. */
function nodeText(node) {
  if (node.type === 'Code') return 'code';
  return node.children?.map(nodeText).join('') ?? (node.type === 'Html' ? '' : (node.value ?? ' '));
}

/** Checks sentences. Published rules count the words of lines, or end a sentence at the point of `1.25`. */
export default ({ Syntax, RuleError, report, getFilePath }) => {
  const generated = GENERATED.test(getFilePath() ?? '');
  function check(node) {
    for (const sentence of nodeText(node).split(/(?<=[.?!][)”"]?)\s+/)) {
      const words = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
      if (words.length > MAX) report(node, new RuleError(`${words.length} words, not ${MAX}: ${words.join(' ')}`));
      if (node.type === Syntax.Paragraph && !generated && HIDDEN_SUBJECT.test(sentence.trim()))
        report(node, new RuleError(`the subject has no name: ${sentence.trim()}`));
    }
  }
  return { [Syntax.Paragraph]: check, [Syntax.TableCell]: check };
};
