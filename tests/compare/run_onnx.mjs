// Runs ONNX files in onnxruntime-node, for onnx_with_others.py, which says what it needs.
//   node run_onnx.mjs FOLDER_WITH_NODE_MODULES < JOBS > RESULTS
// Jobs: a JSON list of {model, pixels, size, batches}; `pixels` is a file of f32, images of 3 x size x size one after
// another. Results: for each job {inputs, outputs, probabilities}: the names, and the output of each batch of the first images.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const onnxruntime = createRequire(process.argv[2] + '/')('onnxruntime-node');
const results = [];
for (const {model, pixels, size, batches} of JSON.parse(readFileSync(0, 'utf8'))) {
  const bytes = readFileSync(pixels);
  const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  const session = await onnxruntime.InferenceSession.create(
    model, {intraOpNumThreads: 1, graphOptimizationLevel: 'all'});
  const probabilities = [];
  for (const batch of batches) {
    const input = new onnxruntime.Tensor('float32', values.slice(0, batch * 3 * size * size), [batch, 3, size, size]);
    const output = (await session.run({[session.inputNames[0]]: input}))[session.outputNames[0]];
    probabilities.push({shape: output.dims, values: Array.from(output.data)});
  }
  results.push({inputs: session.inputNames, outputs: session.outputNames, probabilities});
}
process.stdout.write(JSON.stringify(results));
