// Rules by which html-validate checks the pages.
module.exports = {
  root: true, // ignore configurations in the folders above
  extends: ["html-validate:recommended"], // the HTML standard, accessibility, and clear writing
  rules: {
    "doctype-style": "off", // the HTML standard allows <!doctype html> in either case
  },
};
