// NONLOCAL_API marks what the shared library offers.
#pragma once

#define NONLOCAL_API __attribute__((visibility("default")))
