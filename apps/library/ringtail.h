/* ringtail.h: classify images with a network that Ringtail has trained, from C and from every
 * language that calls C.
 *
 *   ringtail_model* model = ringtail_open("runs/first", 0);
 *   int classes = model ? ringtail_class_count(model) : 0;
 *   double* p = malloc(classes * sizeof *p);
 *   if (!model || ringtail_classify_file(model, "cat.jpg", p, classes)) puts(ringtail_last_error());
 *   else for (int k = 0; k < classes; ++k) printf("%s %f\n", ringtail_class_name(model, k), p[k]);
 *   ringtail_close(model);
 *
 * Compile with `cc classify.c $(pkg-config --cflags --libs ringtail)`, or in CMake with
 * find_package(Ringtail) and target_link_libraries(classify Ringtail::ringtail).
 *
 * An image gets what `ringtail predict` computes of that image alone with as many threads, to the
 * last bit: decoding, EXIF's orientation, crop, size, normalisation and the mirror image, if the run
 * averages over it, are done inside. (Of many images `predict` and `evaluate` compute batches, by
 * the algorithms that are fastest for these, whose last digits may differ.)
 *
 * Errors: a function that fails returns NULL or -1; ringtail_last_error has the sentence. Nothing is
 * printed.
 * Threads: all functions may be called from any thread, with one model from several at the same
 * time; only ringtail_close must be the last call with its model. Images are decoded by the threads
 * that call and computed one after another, by threads of the model's own. After fork() the child
 * opens models of its own; the calls with those of its parent fail.
 * The library stays loaded after dlclose.
 */
#ifndef RINGTAIL_H_
#define RINGTAIL_H_

#include <stddef.h>

#define RINGTAIL_VERSION "0.1.0" /* of this header */

#if defined(__GNUC__)
#define RINGTAIL_API __attribute__((visibility("default")))
#else
#define RINGTAIL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A trained network. */
typedef struct ringtail_model ringtail_model;  // NOLINT(modernize-use-using): C

/* Of the library that runs, "0.1.0". */
RINGTAIL_API const char* ringtail_version(void);

/* Why the last call of this thread that failed did so, UTF-8; "" if none has. Valid until the next
 * call of this thread that fails. */
RINGTAIL_API const char* ringtail_last_error(void);

/* path: final.safetensors or any other checkpoint, or the folder of a run.
 * threads: that compute; 0 for as many as `ringtail predict` takes: train.threads of the run, else
 * the cores that the process may use. NULL if it fails. */
RINGTAIL_API ringtail_model* ringtail_open(const char* path, int threads);

/* Frees a model; NULL is allowed. */
RINGTAIL_API void ringtail_close(ringtail_model* model);

/* The number of classes, which is also that of probabilities. -1 if model is NULL. */
RINGTAIL_API int ringtail_class_count(const ringtail_model* model);

/* The name of class k = 0 .. count - 1, in the order of probabilities, UTF-8. Valid until the model
 * is closed. NULL if there is no such class. */
RINGTAIL_API const char* ringtail_class_name(const ringtail_model* model, int k);

/* Each fills probabilities[0 .. count - 1], which sum up to 1; count must be that of
 * ringtail_class_count. Return 0, or -1 if the image cannot be read. */

/* A JPEG, PNG, BMP, WebP or TIFF file. */
RINGTAIL_API int ringtail_classify_file(ringtail_model* model, const char* path,
                                        double* probabilities, int count);

/* The content of such a file, size bytes. */
RINGTAIL_API int ringtail_classify_encoded(ringtail_model* model, const void* bytes, size_t size,
                                           double* probabilities, int count);

/* Pixels of 3 bytes, R G B, height rows of width pixels from the top, each row stride bytes after
 * the one before (at least 3 * width; 0: without gaps). The same as of a PNG file with them. */
RINGTAIL_API int ringtail_classify_rgb(ringtail_model* model, const unsigned char* pixels,
                                       int height, int width, size_t stride, double* probabilities,
                                       int count);

#ifdef __cplusplus
}
#endif

#endif /* RINGTAIL_H_ */
