// ResumePoint: everything that a run continues from. Read from a checkpoint and written into one
// here and nowhere else; this file's source has every name of the metadata but those that any
// trained network has (model_file.h).
//
//   checkpoint on disk                            --ReadResumePoint-->   ResumePoint
//   Trainer::Create(run, point, world)            restores weights, optimizer state, progress;
//                                                 divides the batch; continues with compression
//   RunKeeper                                     --MetadataOf-->        the next checkpoint
//
// Old checkpoints lack what they were written without: such fields are empty, or at their defaults.
// Thread-safety: functions without state. Numbers keep all their bits. Errors: FailedPrecondition
// if a file is no checkpoint of a run; DataLoss that names file and key if it is damaged.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_RESUME_POINT_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_RESUME_POINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "apps/trainer/asynchronous/server_progress.h"
#include "apps/trainer/checkpoint/data_identity.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/checkpoint/part_exchange.h"
#include "apps/trainer/checkpoint/training_progress.h"
#include "apps/trainer/division/rank_batches.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"
#include "core/storage/safetensors.h"
#include "dist/compression/layer_routes.h"
#include "dist/parameter_server/rule_memory.h"

namespace ringtail {

// How many steps a round of local steps has (local/local_period.h).
struct PeriodProgress {
  int64_t measured = 0;             // by AUTO
  int64_t longest = 0;              // 0: no limit
  int64_t watched = 0;              // rounds in the sums
  double cosines = 0, squares = 0;  // sums of their cosines
  int64_t measured_size = 0;        // image size that AUTO has measured; 0: none, or not known
};
// Of ranks that take steps of their own (local/local_update.h).
struct LocalProgress {
  int64_t rounds = 0;  // exchanged
  // Steps of the round that the parts hold, as it is not exchanged yet; 0: there is none. (Older
  // checkpoints have a 1 for any number.)
  int64_t offers = 0;
  PeriodProgress period;
};

// All but the tensors: what every rank that reaches the checkpoint has to know before it joins the
// others. Read in milliseconds, whatever the checkpoint's size.
struct ResumeHead {
  std::string path;  // for messages

  std::string config_text;  // the effective config, as it was written
  RunConfig config;
  DataIdentity data;
  TrainingProgress progress;
  RankBatches division;
  Numerics numerics;
  std::string algorithms;                     // of convolutions (numerics.h); empty: none
  std::map<int64_t, std::string> allreduces;  // that the ranks selected, by bytes
  ServerProgress servers;                     // of an asynchronous run; empty: none
  RuleScalars server_rule;                    // of its servers' rule
  LocalProgress local;                        // rounds 0 and no offer: none
  SavedRoutes compression;                    // how each gradient travelled; world 0: uncompressed
  int64_t agreed_ranks = -1;                  // Checkpoint::agreed_ranks
  std::string written_after;                  // the failure that it was written after; empty: none
};

// What a generation leaves to the next one in memory, beside the state (train_to_end.h), on every
// rank its own.
struct HandOver {
  int64_t saved_step = -1;  // RunKeeper::saved_step: that of `progress` may not be on the disk
  // Of compression: letters of routes by parameter, and what it keeps by block and parameter.
  std::map<std::string, char> routes;
  std::map<std::string, std::vector<float>> kept;
};

struct ResumePoint : ResumeHead {
  // A run that begins, or a rank that receives its state from another.
  bool empty() const { return !tensors && !in_memory; }

  // The run continues with the state that it has (when layers are unfrozen): there are no tensors.
  std::optional<HandOver> in_memory;
  int source_rank = 0;                     // whose point counts; the same on all ranks
  std::optional<SafetensorsFile> tensors;  // TrainingState's, and what compression keeps
  SavedParts parts;                        // the ranks', beside `path`
};

StatusOr<ResumePoint> ReadResumePoint(Checkpoint checkpoint);
StatusOr<ResumeHead> ReadResumeHead(const CheckpointHead& checkpoint);

// The metadata of a checkpoint; also of the final network.
std::map<std::string, std::string> MetadataOf(const ResumePoint& point,
                                              const std::vector<std::string>& class_names);

// Whether a run with this config and these images continues from `point`: OK without tensors, else
// FailedPrecondition that says what differs.
Status CheckSameRun(const ResumePoint& point, const RunConfig& config, const DataIdentity& data);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_RESUME_POINT_H_
