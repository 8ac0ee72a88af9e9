/* A program in C that has nothing of Ringtail but libringtail.so and its header.
 *
 *   library_client MODEL CALLERS IMAGE...
 *
 * CALLERS threads classify all images with one model, as files and as bytes; the first prints
 * "IMAGE CLASS PROBABILITY CLASS PROBABILITY ..." (as %a) for each. A file NAME.ppm is classified as
 * pixels in memory, with gaps between its rows. Exits with 1 after an error, which it prints, or if
 * two threads or two ways got different bits. */
#include <pthread.h>
#include <ringtail.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostImages = 64, kMostClasses = 16, kGap = 7 };

static ringtail_model* model;
static int classes, images;
static char** paths;

typedef struct {
  double p[kMostImages][kMostClasses];
  int failed;
  char error[1024];
} Answers;

static unsigned char* ReadAll(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char* bytes = malloc(*size + 1);
  if (fread(bytes, 1, *size, file) != *size) *size = 0;
  bytes[*size] = 0;
  fclose(file);
  return bytes;
}

static int ClassifyPpm(const char* path, double* p) {
  size_t size = 0;
  int width = 0, height = 0, used = 0;
  unsigned char* bytes = ReadAll(path, &size);
  if (bytes == NULL || sscanf((char*)bytes, "P6 %d %d 255%n", &width, &height, &used) != 2) return -1;
  const size_t row = 3 * (size_t)width, stride = row + kGap;
  unsigned char* pixels = malloc(stride * (size_t)height);
  for (int y = 0; y < height; ++y) memcpy(pixels + y * stride, bytes + used + 1 + y * row, row);
  const int result = ringtail_classify_rgb(model, pixels, height, width, stride, p, classes);
  free(pixels);
  free(bytes);
  return result;
}

static int ClassifyBothWays(const char* path, double* p) {
  double again[kMostClasses];
  size_t size = 0;
  if (ringtail_classify_file(model, path, p, classes) != 0) return -1;
  unsigned char* bytes = ReadAll(path, &size);
  if (bytes == NULL) return -1;
  const int result = ringtail_classify_encoded(model, bytes, size, again, classes);
  free(bytes);
  return result == 0 && memcmp(again, p, sizeof *p * (size_t)classes) == 0 ? 0 : -1;
}

static void* Caller(void* argument) {
  Answers* answers = argument;
  for (int i = 0; i < images && !answers->failed; ++i) {
    const char* end = strrchr(paths[i], '.');
    const int is_ppm = end != NULL && strcmp(end, ".ppm") == 0;
    answers->failed = (is_ppm ? ClassifyPpm : ClassifyBothWays)(paths[i], answers->p[i]) != 0;
    if (answers->failed) {
      snprintf(answers->error, sizeof answers->error, "%s", ringtail_last_error());
    }
  }
  return NULL;
}

static int CallAll(int callers, Answers* answers) {
  pthread_t threads[64];
  for (int t = 0; t < callers; ++t) {
    if (pthread_create(&threads[t], NULL, Caller, &answers[t]) != 0) return 1;
  }
  for (int t = 0; t < callers; ++t) pthread_join(threads[t], NULL);
  for (int t = 0; t < callers; ++t) {
    if (answers[t].failed) {
      fprintf(stderr, "thread %d: %s\n", t, answers[t].error);
      return 1;
    }
    if (memcmp(answers[t].p, answers[0].p, sizeof answers[t].p) != 0) {
      fprintf(stderr, "thread %d got other bits\n", t);
      return 1;
    }
  }
  /* Errors of other threads are not those of this one. */
  return strcmp(ringtail_last_error(), "") != 0;
}

int main(int argc, char** argv) {
  if (argc < 3 || strcmp(ringtail_version(), RINGTAIL_VERSION) != 0) return 1;
  const int callers = atoi(argv[2]);
  images = argc - 3;
  paths = argv + 3;
  model = ringtail_open(argv[1], 2);
  if (model == NULL) {
    fprintf(stderr, "%s\n", ringtail_last_error());
    return 1;
  }
  classes = ringtail_class_count(model);
  Answers* answers = calloc((size_t)callers, sizeof *answers);
  if (images > kMostImages || classes > kMostClasses || CallAll(callers, answers) != 0) return 1;
  for (int i = 0; i < images; ++i) {
    printf("%s", paths[i]);
    for (int k = 0; k < classes; ++k) {
      printf(" %s %a", ringtail_class_name(model, k), answers[0].p[i][k]);
    }
    printf("\n");
  }
  free(answers);
  ringtail_close(model);
  return 0;
}
