// The runner: a model behind a serial line.
#pragma once

// What a port's start-up code calls when memory and stack are ready. Never returns.
void runner_main();
