// libringtail_mpi.so: MpiPort over a real MPI. The only file of Ringtail that includes <mpi.h>.
#define OMPI_SKIP_MPICXX 1  // the C++ bindings, which the standard has dropped
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <vector>

#include "dist/transport/mpi/mpi_port.h"

namespace ringtail {
namespace {

std::string ErrorText(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return std::string(call) + ": " + std::string(text, length);
}

std::string ErrorOf(const char* call, int code) {
  return code == MPI_SUCCESS ? "" : ErrorText(call, code);
}

class Port : public MpiPort {
 public:
  explicit Port(MPI_Comm ranks) : ranks_(ranks) {
    MPI_Comm_rank(ranks, &rank_);
    MPI_Comm_size(ranks, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::string Send(int peer, int lane, std::span<const std::byte> bytes, void* context) override {
    return ErrorOf("MPI_Isend", MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                                          peer, lane, ranks_, Add(context, false)));
  }

  std::string Receive(int peer, int lane, std::span<std::byte> bytes, void* context) override {
    return ErrorOf("MPI_Irecv", MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                                          peer, lane, ranks_, Add(context, true)));
  }

  std::string Poll(std::span<Finished> finished, size_t* count) override {
    *count = 0;
    const int started = static_cast<int>(requests_.size());
    indices_.resize(started);
    statuses_.resize(started);
    int done = 0;
    const int code =
        MPI_Testsome(started, requests_.data(), &done, indices_.data(), statuses_.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (int i = 0; i < done; ++i) {
        const int error = statuses_[i].MPI_ERROR;
        if (error != MPI_SUCCESS && error != MPI_ERR_PENDING)
          return ErrorText("MPI_Testsome", error);
      }
    }
    if (code != MPI_SUCCESS) return ErrorText("MPI_Testsome", code);
    for (int i = 0; i < (done == MPI_UNDEFINED ? 0 : done); ++i) {
      const int index = indices_[i];
      int bytes = 0;
      if (operations_[index].receives) MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
      ended_.push_back(
          {.context = operations_[index].context, .bytes = static_cast<size_t>(bytes)});
    }
    RemoveNull();
    while (*count < finished.size() && first_ended_ < ended_.size()) {
      finished[(*count)++] = ended_[first_ended_++];
    }
    if (first_ended_ == ended_.size()) {
      ended_.clear();
      first_ended_ = 0;
    }
    return "";
  }

  std::string Leave() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
    requests_.clear();
    operations_.clear();
    MPI_Comm_free(&ranks_);
    return ErrorOf("MPI_Finalize", MPI_Finalize());
  }

 private:
  struct Operation {
    void* context;
    bool receives;
  };

  MPI_Request* Add(void* context, bool receives) {
    operations_.push_back({context, receives});
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }

  // Of requests that have ended MPI leaves MPI_REQUEST_NULL.
  void RemoveNull() {
    size_t kept = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      operations_[kept++] = operations_[i];
    }
    requests_.resize(kept);
    operations_.resize(kept);
  }

  MPI_Comm ranks_;  // of our own, so that no message of others matches ours
  int rank_ = 0, size_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Operation> operations_;  // of requests_, one each
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<Finished> ended_;  // not yet returned: from first_ended_ on
  size_t first_ended_ = 0;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) MpiPort* RingtailOpenMpiPort(int version,
                                                                               std::string* error) {
  if (version != kMpiPortVersion) {
    *error = "the module and the program are of different builds; build or install both again";
    return nullptr;
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    *error = "MPI has been used in this process before; it cannot begin twice";
    return nullptr;
  }
  int provided = 0;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED) {
    *error = "MPI_Init_thread has failed, or lets no thread but the main one call it";
    return nullptr;
  }
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int duplicated = MPI_Comm_dup(MPI_COMM_WORLD, &ranks);
  if (duplicated != MPI_SUCCESS) {
    *error = ErrorText("MPI_Comm_dup", duplicated);
    return nullptr;
  }
  MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
  return new Port(ranks);
}

}  // namespace ringtail
