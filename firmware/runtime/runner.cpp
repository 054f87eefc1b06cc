#include "runner.h"

#include <string.h>

#include "model.h"
#include "port.h"
#include "server.h"

void runner_main() {
    port::init();
    // Plain text outside of frames: what a person sees who opens the port in a terminal.
    const char* banner = MODEL_NAME " on " MODEL_BOARD ", waiting for deploy\r\n";
    port::write(reinterpret_cast<const uint8_t*>(banner), strlen(banner));
    server::serve();
}
