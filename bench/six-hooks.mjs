/** A plugin that taps every public hook and answers at once. */
const seen = { count: 0 };
const look = () => {
  seen.count += 1;
};

export default {
  name: 'six-hooks',
  hooks: {
    onHttpRequest: look,
    onBeforeApiCall: look,
    onAfterApiCall: look,
    onBeforeSign: look,
    onResponseSent: look,
    onError: look,
  },
};
