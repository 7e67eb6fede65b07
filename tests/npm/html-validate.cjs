// How html-validate judges the pages.
module.exports = {
  root: true, // a configuration in a folder above has no say
  extends: ["html-validate:recommended"], // the HTML standard, accessibility, and clear writing
  rules: {
    "doctype-style": "off", // the HTML standard takes <!doctype html> in either case
  },
};
