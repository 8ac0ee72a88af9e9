/* classify MODEL IMAGE: prints the probability of each class. */
#include <ringtail.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  ringtail_model* model = argc == 3 ? ringtail_open(argv[1], 0) : NULL;
  const int classes = model != NULL ? ringtail_class_count(model) : 0;
  double* p = malloc(classes * sizeof *p);
  if (model == NULL || ringtail_classify_file(model, argv[2], p, classes) != 0) {
    fprintf(stderr, "classify: %s\n", ringtail_last_error());
    return 1;
  }
  for (int k = 0; k < classes; ++k) printf("%s %f\n", ringtail_class_name(model, k), p[k]);
  ringtail_close(model);
  free(p);
  return 0;
}
