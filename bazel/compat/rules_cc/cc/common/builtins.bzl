"""Other names for what is built in: a file may not define a name that it reads."""

builtin_cc_common = cc_common
builtin_cc_info = CcInfo
builtin_toolchain_config_info = CcToolchainConfigInfo
