#include "tests/testing/mpirun.h"

#include <unistd.h>

#include <chrono>

namespace ringtail {

ProcessResult RunMpirun(int ranks, const std::vector<std::string>& command) {
  std::vector<std::string> mpirun = {"mpirun", "--oversubscribe"};
  if (geteuid() == 0) mpirun.emplace_back("--allow-run-as-root");
  mpirun.insert(mpirun.end(), {"-np", std::to_string(ranks)});
  mpirun.insert(mpirun.end(), command.begin(), command.end());
  // A test looks for no fast network and binds ranks to no cores that others have. MPI is not
  // instrumented: sanitizers do not judge what it leaks, nor its own synchronisation.
  return RunProcess(
      std::move(mpirun),
      {"OMPI_MCA_btl=self,vader,tcp", "OMPI_MCA_hwloc_base_binding_policy=none",
       "OMPI_MCA_plm_rsh_agent=/bin/false",  // there is one host
       "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=ignore_noninstrumented_modules=1"},
      std::chrono::minutes(5));
}

}  // namespace ringtail
