// OpenCV's number of threads and its log, which belong to the whole process. The loader's threads
// are the parallelism, and what a decoder thinks of a file is no log line; a library in another
// program leaves both to the program. The bits of images are the same.
// Thread-safety: any thread.
#ifndef RINGTAIL_DATA_DECODING_OPENCV_SETTINGS_H_
#define RINGTAIL_DATA_DECODING_OPENCV_SETTINGS_H_

namespace ringtail {

// Before an image is decoded: the first call turns OpenCV's own threads and its log off.
void ConfigureOpenCvOnce();
// From now on ConfigureOpenCvOnce does nothing.
void KeepOpenCvSettings();

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_OPENCV_SETTINGS_H_
