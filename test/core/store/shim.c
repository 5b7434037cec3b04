/* Stands between a program and its disk (LD_PRELOAD), for the files below SHIM_WATCH: logs what it does, and does it badly when told.
 *
 * SHIM_LOG      every write, sync, truncation and removal in its order: a head of six 64-bit numbers (what, file, offset, length, 0, 0)
 *               and the bytes. A file's first record is its name.
 * SHIM_CONTROL  a file of three 32-bit numbers, read before each call: how many syncs fail with EIO (-1: all), milliseconds
 *               that a sync takes longer, whether the disk is full (what would make a file longer fails with ENOSPC).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 1, WRITE = 2, SYNC = 3, TRUNCATE = 4, REMOVE = 5 };
#define MAX_FILES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *names[MAX_FILES];
static int count, log_fd = -1, begun;
static const char *watch;
static volatile int32_t *control;

static void begin(void) {
  if (begun) return;
  begun = 1;
  watch = getenv("SHIM_WATCH");
  const char *log = getenv("SHIM_LOG"), *told = getenv("SHIM_CONTROL");
  if (log) log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (!told) return;
  int fd = syscall(SYS_openat, AT_FDCWD, told, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  void *at = mmap(NULL, 12, PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) control = at;
  syscall(SYS_close, fd);
}

static void record(int64_t what, int64_t file, int64_t offset, int64_t length, const void *bytes) {
  if (log_fd < 0) return;
  int64_t head[6] = {what, file, offset, length, 0, 0};
  struct iovec parts[2] = {{head, sizeof head}, {(void *)bytes, bytes ? (size_t)length : 0}};
  syscall(SYS_writev, log_fd, parts, 2);
}

/* The number of a file, or -1 if it is not watched. Call it with the lock. */
static int number_of(const char *path) {
  size_t prefix = strlen(watch);
  if (strncmp(path, watch, prefix) != 0 || path[prefix] != '/') return -1;
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], path) == 0) return i;
  if (count == MAX_FILES) abort();
  names[count] = strdup(path);
  record(NAME, count, 0, strlen(path), path);
  return count++;
}

/* Whether it is watched. Without the lock: whoever only wakes a thread does not wait for one that writes. */
static int is_watched(int fd, char *path) {
  char link[64];
  begin();
  if (!watch) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  size_t prefix = strlen(watch);
  return strncmp(path, watch, prefix) == 0 && path[prefix] == '/';
}

static int no_space(int fd, int64_t end) {
  struct stat now;
  if (!control || !control[2] || fstat(fd, &now) != 0 || end <= now.st_size) return 0;
  errno = ENOSPC;
  return 1;
}

static ssize_t passed_on(int fd, const void *bytes, size_t length, int64_t offset) {
  return offset >= 0 ? syscall(SYS_pwrite64, fd, bytes, length, offset) : syscall(SYS_write, fd, bytes, length);
}

static ssize_t written(int fd, const void *bytes, size_t length, int64_t offset) {
  char path[PATH_MAX];
  if (!is_watched(fd, path)) return passed_on(fd, bytes, length, offset);
  pthread_mutex_lock(&lock);
  ssize_t done = -1;
  int64_t at = offset >= 0 ? offset : syscall(SYS_lseek, fd, 0, SEEK_CUR);
  if (!no_space(fd, at + (int64_t)length)) {
    done = passed_on(fd, bytes, length, offset);
    if (done > 0) record(WRITE, number_of(path), at, done, bytes);
  }
  int error = errno;
  pthread_mutex_unlock(&lock);
  errno = error;
  return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) { return written(fd, bytes, length, offset); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return written(fd, bytes, length, offset); }
ssize_t write(int fd, const void *bytes, size_t length) { return written(fd, bytes, length, -1); }

static int synced(int fd, long call) {
  static int failed;
  char path[PATH_MAX];
  if (!is_watched(fd, path)) return syscall(call, fd);
  if (control) {
    if (control[1] > 0) {
      struct timespec wait = {control[1] / 1000, (control[1] % 1000) * 1000000L};
      nanosleep(&wait, NULL);
    }
    if (control[0] == 0) failed = 0;
    if (control[0] < 0 || failed < control[0]) {
      failed++;
      errno = EIO;
      return -1;
    }
  }
  int done = syscall(call, fd);
  pthread_mutex_lock(&lock);
  if (done == 0) record(SYNC, number_of(path), 0, 0, NULL);
  pthread_mutex_unlock(&lock);
  return done;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int truncated(int fd, int64_t length) {
  char path[PATH_MAX];
  if (!is_watched(fd, path)) return syscall(SYS_ftruncate, fd, length);
  pthread_mutex_lock(&lock);
  int done = no_space(fd, length) ? -1 : syscall(SYS_ftruncate, fd, length);
  if (done == 0) record(TRUNCATE, number_of(path), length, 0, NULL);
  pthread_mutex_unlock(&lock);
  return done;
}

int ftruncate64(int fd, off64_t length) { return truncated(fd, length); }
int ftruncate(int fd, off_t length) { return truncated(fd, length); }

int unlink(const char *path) {
  pthread_mutex_lock(&lock);
  begin();
  int file = watch ? number_of(path) : -1;
  int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (file >= 0 && done == 0) record(REMOVE, file, 0, 0, NULL);
  pthread_mutex_unlock(&lock);
  return done;
}
