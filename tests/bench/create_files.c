// The least that has to be done to have the same files: make folders, create, write, close.
//
//     create_files INDEX PACK PROCESSES        into the current folder
//
// INDEX has a line a folder, `D path`, parents first, and then its files, `F size name`; their bytes follow one
// another in PACK in the same order. `D .` is the current folder. With more than one process, folders are shared out
// among them.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what) {
    perror(what);
    exit(1);
}

static char *mapped(const char *path, size_t *size) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0) die(path);
    *size = (size_t)status.st_size;
    char *bytes = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) die(path);
    close(file);
    return bytes;
}

static void put(int folder, const char *name, const char *body, size_t size) {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file < 0) die(name);
    while (size > 0) {
        ssize_t written = write(file, body, size);
        if (written < 0) die(name);
        body += written;
        size -= (size_t)written;
    }
    if (close(file) < 0) die(name);
}

// One pass over the index. The pass without a share makes the folders, the others make the files of theirs.
static void pass(char *index, size_t length, const char *pack, int share, int shares) {
    char *end = index + length;
    size_t offset = 0;
    int folder = -1, number = -1;
    while (index < end) {
        char *line = index, *stop = memchr(line, '\n', (size_t)(end - line));
        index = stop + 1;
        char kind = line[0], name[4096];
        if (kind == 'D') {
            size_t size = (size_t)(stop - line - 2);
            memcpy(name, line + 2, size);
            name[size] = 0;
            number++;
            if (folder >= 0) close(folder);
            folder = -1;
            if (share < 0) {
                if (strcmp(name, ".") != 0 && mkdir(name, 0777) < 0) die(name);
            } else if (number % shares == share) {
                folder = open(name, O_RDONLY | O_DIRECTORY);
                if (folder < 0) die(name);
            }
        } else {
            char *space;
            size_t size = strtoull(line + 2, &space, 10), length = (size_t)(stop - space - 1);
            memcpy(name, space + 1, length);
            name[length] = 0;
            if (folder >= 0) put(folder, name, pack + offset, size);
            offset += size;
        }
    }
    if (folder >= 0) close(folder);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fputs("create_files INDEX PACK PROCESSES\n", stderr);
        return 2;
    }
    size_t length, size;
    char *index = mapped(arguments[1], &length), *pack = mapped(arguments[2], &size);
    int shares = atoi(arguments[3]), failed = 0, status;
    pass(index, length, pack, -1, shares);
    for (int share = 1; share < shares; share++) {
        pid_t child = fork();
        if (child < 0) die("fork");
        if (child == 0) {
            pass(index, length, pack, share, shares);
            return 0;
        }
    }
    pass(index, length, pack, 0, shares);
    while (wait(&status) > 0) failed |= status != 0;
    return failed;
}
