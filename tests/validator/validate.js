// Print the Khronos validator's report of each file as one JSON line: node validate.js FILE...
const fs = require("fs");
const validator = require("gltf-validator");

(async () => {
  for (const file of process.argv.slice(2)) {
    const report = await validator.validateBytes(new Uint8Array(fs.readFileSync(file)), { maxIssues: 1000 });
    const { numErrors, numWarnings, messages } = report.issues;
    const kinds = [...new Set(messages.filter((m) => m.severity < 2).map((m) => `${m.code} ${m.pointer}: ${m.message}`))];
    console.log(JSON.stringify({ file, errors: numErrors, warnings: numWarnings, kinds: kinds.slice(0, 8) }));
  }
})();
