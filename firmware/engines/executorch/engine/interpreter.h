// ExecuTorch's interpreter with everything it needs: the program of program.h, and pools of the sizes stated
// there.
#pragma once

#include <stdint.h>

namespace interpreter {

// What was being done when something failed: the highest byte of a status. The rest is ExecuTorch's error
// code.
enum Stage : uint8_t {
    kProgram = 1,    // opening the program
    kMethod = 2,     // loading the method: memory is taken, operators are looked up
    kInput = 3,      // handing over an input's memory
    kOutput = 4,     // handing over an output's memory
    kRun = 5,        // running the method
    kElsewhere = 6,  // an input or output lies elsewhere than the program said
    kStopped = 7,    // ExecuTorch gave up: one of its own checks failed
};

// Opens the program and loads its method, the first time it is called. Returns 0 or a status.
int32_t load();

// Runs the method on what lies in the inputs. Returns 0 or a status.
int32_t run();

}  // namespace interpreter
