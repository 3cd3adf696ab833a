/** Why a plugin cannot be used; the message is one line without the plugin's name. */
export class PluginProblem extends Error {}
