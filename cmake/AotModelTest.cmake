# aot_model_test(<target>
#     LIBRARY <library>                           what aot_model_library() made
#     VECTORS <file|folder>                       `.npz` with arrays `in_<i>`, `out_<i>` or by name of tensor, or ONNX
#                                                 test data
#     [ATOL <x>]                                  real outputs: |got - want| <= atol + rtol * |want|
#     [RTOL <x>]                                  as above
#     [MAX_LSB <n>]                               integer outputs: |got - want| <= max_lsb
#     [LABELS <label>...]                         of the CTest; Bazel has tags
# )
# Makes the program <target>, which has the vectors in it, and the CTest of the same name (after enable_testing()).
#
# aot_model_benchmark(<target> LIBRARY <library> [RUNS <n>])
# Makes the program <target>, which prints the time of one inference; not built by `all`.
#
# A project that crosses runs both through CMAKE_CROSSCOMPILING_EMULATOR. Programs for a machine without an operating
# system need more than the library: AOT_MODEL_TEST_SOURCES (start-up code) and AOT_MODEL_TEST_LINK_OPTIONS (linker
# script, semihosting). The toolchain files of this project set all three for QEMU.
#
# In a Zephyr application, which is one program, main() becomes that of the application; it talks by printk(), and twister's
# harness `console` waits for its last line.
include_guard(GLOBAL)

function(aot_model_test target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY;VECTORS;ATOL;RTOL;MAX_LSB" "LABELS")
    set(call "aot_model_test(${target})")
    _aot_model_check_arguments("${call}")
    if (NOT arg_VECTORS)
        message(FATAL_ERROR "${call}: VECTORS is missing")
    endif ()
    cmake_path(ABSOLUTE_PATH arg_VECTORS NORMALIZE)
    if (NOT EXISTS "${arg_VECTORS}")
        message(FATAL_ERROR "${call}: there are no vectors ${arg_VECTORS}")
    endif ()
    set(files "${arg_VECTORS}")
    if (IS_DIRECTORY "${arg_VECTORS}")
        file(GLOB_RECURSE files CONFIGURE_DEPENDS "${arg_VECTORS}/*.pb")
    endif ()
    set(arguments "--vectors=${arg_VECTORS}")
    foreach (keyword IN ITEMS ATOL RTOL MAX_LSB)
        if (DEFINED arg_${keyword})
            string(TOLOWER "${keyword}" option)
            string(REPLACE "_" "-" option "${option}")
            list(APPEND arguments "--${option}=${arg_${keyword}}")
        endif ()
    endforeach ()
    _aot_model_add_program(${target} "${call}" "${arg_LIBRARY}" "test-main" "${arguments}" "${files}")

    if (TARGET zephyr_interface)
        return()
    endif ()
    add_test(NAME ${target} COMMAND ${target})
    set_tests_properties(${target} PROPERTIES LABELS "${arg_LABELS}")
    get_target_property(emulator ${target} CROSSCOMPILING_EMULATOR)
    if (CMAKE_CROSSCOMPILING AND NOT emulator)
        set_tests_properties(${target} PROPERTIES DISABLED TRUE)  # shown as such, rather than failing on this machine
    endif ()
endfunction()

function(aot_model_benchmark target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY;RUNS" "")
    set(call "aot_model_benchmark(${target})")
    _aot_model_check_arguments("${call}")
    set(arguments "")
    if (DEFINED arg_RUNS)
        set(arguments "--runs=${arg_RUNS}")
    endif ()
    set(objects "")
    if (CMAKE_CROSSCOMPILING_EMULATOR MATCHES "qemu-system-arm")
        # An emulator counts no cycles: the program has the estimate of the library's objects in it.
        set(objects "$<TARGET_OBJECTS:${arg_LIBRARY}>")
        _aot_model_compiler(compiler)
        list(APPEND arguments "${compiler}" --objects "${objects}")
    endif ()
    _aot_model_add_program(${target} "${call}" "${arg_LIBRARY}" "benchmark-main" "${arguments}" "${objects}")
    if (NOT TARGET zephyr_interface)
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif ()
endfunction()

# An executable whose main() the compiler writes from the metadata of a library.
function(_aot_model_add_program target call library subcommand arguments files)
    if (NOT library)
        message(FATAL_ERROR "${call}: LIBRARY is missing")
    endif ()
    _aot_model_metadata(metadata "${call}" "LIBRARY" "${library}")
    _aot_model_folder(dir "${target}" "${metadata};${arguments}")
    _aot_model_add_command(
        OUTPUT "${dir}/main.c"
        ARGUMENTS ${subcommand} "${metadata}" -o "${dir}/main.c" ${arguments}
        DEPFILE "${dir}/main.d"
        DEPENDS "${metadata}" ${files}
        COMMENT "Generating ${target}"
    )
    set_source_files_properties("${dir}/main.c" PROPERTIES SKIP_LINTING ON)
    if (TARGET zephyr_interface)
        if (NOT CONFIG_CBPRINTF_FP_SUPPORT)
            message(FATAL_ERROR "${call}: the program prints numbers with a point: set CONFIG_CBPRINTF_FP_SUPPORT=y")
        endif ()
        target_sources(app PRIVATE "${dir}/main.c")
        target_link_libraries(app PRIVATE ${library})
        return()
    endif ()
    add_executable(${target} "${dir}/main.c" ${AOT_MODEL_TEST_SOURCES})
    get_target_property(flags_from ${library} AOT_MODEL_FLAGS_FROM)
    target_link_libraries(${target} PRIVATE ${library} ${flags_from})
    target_link_options(${target} PRIVATE ${AOT_MODEL_TEST_LINK_OPTIONS})
    _aot_model_require_c99(${target})
endfunction()
