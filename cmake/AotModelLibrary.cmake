# aot_model_library(<target>
#     MODEL <file>                                the ONNX or TFLite file; one that the build makes, too
#     [NAME <identifier>]                         prefix of the generated files and symbols; default: the library's name
#                                                 as a C identifier, with `_model` where `<name>.h` would hide a header
#                                                 of C
#     [TARGET <target>]                           what to generate code for (`aot-model targets`), with its options:
#                                                 `cortex-m4,optimize=size`; default: what the library is compiled for,
#                                                 which the C compiler is asked
#     [FLAGS_FROM <target>...]                    targets whose flags the library is compiled with; default: where a
#                                                 platform keeps them in a target (zephyr_interface), that one
#     [OFFLOAD <target>...]                       targets that take over parts of the model first, in order of
#                                                 preference: docs/targets.md
#     [TARGET_PLUGINS <file>...]                  Python files that define further targets
#     [SIGNATURE <name>]                          which signature of a TFLite file with several is the model (default:
#                                                 its first sub-graph)
#     [DIMS <symbol>=<n>...]                      extents of the model's symbolic dimensions
#     [WORKSPACE static|caller]                   who owns the workspace: the library, or the caller of <name>_run()
#     [IO caller|workspace]                       where inputs and outputs are
#     [POOLS <name>[:<size>[:<align>]]...]        pools of the workspace, the most preferred first
#     [CONSTANT_POOLS <name>[:<size>[:<align>]]...] pools of the constants, the most preferred first
#     [POOL_SECTIONS <pool>=<section>...]         linker sections of the pools' arrays
#     [POOL_SPEEDS <pool>=<n>...]                 classes of speed: pools of a higher one are preferred (default: 0)
#     [POOL_TARGETS <pool>=<target>[+<target>]...] targets that may touch a pool (default: all)
#     [PLANNER <name>]                            memory planner: auto (default), greedy, best-fit, local-search,
#                                                 optimal, or a plug-in's
#     [MEMORY <name>]                             what code and constants of a Cortex-M are in, for which the code is
#                                                 written and max_cycles are estimated: 0ws, tcm, l4-art, f4-art, nrf53,
#                                                 m7-cache
#     [CONSTANTS <input>=<v>,…...]                inputs as constants: one number for each element, or one for all
#     [BOUNDS <value>=<n>...]                     room for n rows of a value, whose number depends on data (Range, Loop)
#     [STRING_BYTES 64|16|32|128|256|512|1024]    size of an element of tensors of strings, its NUL included
#     [PARAMS linked|external]                    constants in the code, or in <name>.params, which is made beside it
#     [PROFILE]                                   count the ticks of each layer, by a clock of the program
#     [TRACE]                                     tell each tensor to a function of the program as soon as it is
#                                                 complete
#     [FETCH <bytes>]                             weights are copied to the workspace while the layer before computes,
#                                                 by DMA of the program; so many bytes (64k) at most at a time
#     [INTERFACES module|positional|packed|tvm-ffi...] what the library offers beside its structs
#     [METADATA_LEVEL full|size|none]             how much of the metadata is in flash
#     [MAX_RAM <bytes>]                           budget of the workspace (16k, 1m): more is an error of the build, with
#                                                 a table by layer
#     [MAX_FLASH <bytes>]                         budget of the constants; with count_code, of the code as well
#     [QUANTISE]                                  make integers of a float model first: docs/quantise.md
#     [CALIBRATION <file>]                        samples for `quantise`: .npz, .npy or a folder
#     [QUANTISATION_PLAN <file>]                  the plan for `quantise` to carry out, with calibration or without
#     [ACCURACY <share>]                          how much worse than the float model `quantise` may be on held-back
#                                                 samples: 0.5%
#     [METRIC top1|noise|mse|cosine]              what `quantise` chooses by on held-back samples, and what ACCURACY is
#                                                 of
#     [WITHIN <times>]                            the best of mixed precision that `quantise` finds within so many times
#                                                 the cycles (of a Cortex-M), RAM and flash of 8 bits alone: 1.3x, or of
#                                                 some of them: cycles=1.3x,ram=2x
#     [COUNT_CODE]                                count the code as well, when it is compiled: its size by layer is
#                                                 told, and max_flash is of code and constants
#     [MAX_STACK <bytes>]                         budget of the stack of <name>_run(): measured when the C is compiled,
#                                                 with GCC
#     [STACK_ALLOWANCE <bytes>]                   what each function that max_stack cannot count may need of the stack;
#                                                 default: such a function is an error
#     [MAX_CYCLES <n>]                            budget of the estimated cycles of an inference on a Cortex-M (4.2M):
#                                                 what was compiled is run in QEMU; more is an error of the build, with
#                                                 a table by layer
#     [CLOCK <hertz>]                             of the core (120M), for microseconds in the table of max_cycles
#     [OPTIONS <argument>...]                     any other arguments of `aot-model compile`
#     [DEPENDS <file|target>...]                  what else is read or must be there first
#     [METADATA <variable>]                       receives the path of the generated JSON
#     [REPORT <variable>]                         receives the path of the report, and has it written; a variable that
#                                                 is called `html`: the page (docs/report.md)
#     [EXCLUDE_FROM_ALL]                          built only when something needs it
# )
#
# Makes <target>, a STATIC library of the generated C, compiled with the flags of the project, and the alias
# <project>::<target>. Its header set has <name>.h and the runtime's headers: link to it, include "<name>.h";
# install(TARGETS <target> [EXPORT <export>] FILE_SET HEADERS) installs all that its users need.
# Everything generated is in <target>.aot/ of the binary directory, in a folder there for each configuration where a generator
# has several and they may differ.
include_guard(GLOBAL)

function(aot_model_library target)
    get_property(options GLOBAL PROPERTY AOT_MODEL_OPTIONS)
    foreach (kind IN ITEMS text list map flag file)
        set(${kind} "${options}")
        list(FILTER ${kind} INCLUDE REGEX "^${kind}/")
        list(TRANSFORM ${kind} REPLACE "^.*/(.*)/.*$" "\\1")
    endforeach ()
    cmake_parse_arguments(PARSE_ARGV 1 arg
        "${flag};COUNT_CODE;EXCLUDE_FROM_ALL"
        "${text};${file};MODEL;NAME;TARGET;MAX_STACK;STACK_ALLOWANCE;MAX_CYCLES;CLOCK;METADATA;REPORT"
        "${list};${map};FLAGS_FROM;OFFLOAD;TARGET_PLUGINS;OPTIONS;DEPENDS")
    set(call "aot_model_library(${target})")
    _aot_model_check_arguments("${call}")
    if (NOT arg_MODEL)
        message(FATAL_ERROR "${call}: MODEL is missing")
    endif ()
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if (NOT "C" IN_LIST languages)
        message(FATAL_ERROR "${call}: the generated code is C: enable the language, project(${PROJECT_NAME} LANGUAGES C ...)")
    endif ()
    if (NOT DEFINED arg_NAME)
        _aot_model_name(arg_NAME "${call}" "${target}")
    elseif (NOT arg_NAME MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
        message(FATAL_ERROR "${call}: NAME '${arg_NAME}' is not a C identifier")
    endif ()
    if (NOT DEFINED arg_TARGET)
        set(arg_TARGET "${AOT_MODEL_TARGET}")
        if (NOT arg_TARGET)
            set(arg_TARGET auto)
        endif ()
    endif ()
    list(JOIN arg_OFFLOAD "," before)
    if (before)
        set(arg_TARGET "${before},${arg_TARGET}")
    endif ()
    set(probe "")
    set(shown " for ${arg_TARGET}")
    if (arg_TARGET MATCHES "(^|,)(auto|host)(,|$)")
        set(probe "$<TARGET_OBJECTS:${target}.probe>")
        string(REGEX REPLACE "^ for auto.*" "" shown "${shown}")
    endif ()
    _aot_model_take_regions("${call}" arg_POOLS arg_POOL_SECTIONS arg_CONSTANT_POOLS)
    _aot_model_find_model(model "${call}" "${arg_MODEL}" "${arg_DEPENDS}")

    set(arguments "--name=${arg_NAME}" "--target=${arg_TARGET}")
    foreach (option IN LISTS options)
        string(REPLACE "/" ";" option "${option}")
        list(POP_FRONT option kind keyword)
        if (kind STREQUAL "file" AND DEFINED arg_${keyword})
            _aot_model_find_model(file "${call}" "${arg_${keyword}}" "${arg_DEPENDS}" ${keyword})
            list(APPEND arguments "${option}=${file}")
            if (NOT IS_DIRECTORY "${file}")  # of a folder, the depfile names what was read
                list(APPEND arg_DEPENDS "${file}")
            endif ()
        elseif (NOT kind MATCHES "flag|file")
            foreach (value IN LISTS arg_${keyword})
                list(APPEND arguments "${option}=${value}")
            endforeach ()
        elseif (arg_${keyword})
            list(APPEND arguments "${option}")
        endif ()
    endforeach ()
    if (probe)
        list(APPEND arguments "--target-probe=${probe}")
    endif ()
    foreach (plugin IN LISTS arg_TARGET_PLUGINS)
        cmake_path(ABSOLUTE_PATH plugin NORMALIZE)
        list(APPEND arguments "--target-plugin=${plugin}")
        list(APPEND arg_DEPENDS "${plugin}")
    endforeach ()
    if (CMAKE_GENERATOR MATCHES "Ninja")
        # Ninja sees that the C did not change and stops there. Make would find it older than the model for ever.
        list(APPEND arguments --keep-unchanged)
    endif ()
    _aot_model_folder(dir "${target}" "${model};${arguments};${arg_OPTIONS}")
    set(source "${dir}/${arg_NAME}.c")
    set(header "${dir}/${arg_NAME}.h")
    set(metadata "${dir}/${arg_NAME}.json")

    set(report "")
    if (DEFINED arg_REPORT)
        set(report "${dir}/${arg_NAME}.report.txt")
        if (arg_REPORT STREQUAL "html")
            set(report "${dir}/${arg_NAME}.report.html")
        endif ()
        list(APPEND arguments "--report=${report}")
        set(${arg_REPORT} "${report}" PARENT_SCOPE)
    endif ()
    set(parameters "")
    if ("--params=external" IN_LIST arguments OR "--params=external" IN_LIST arg_OPTIONS)
        set(parameters "${dir}/${arg_NAME}.params")
    endif ()
    _aot_model_add_command(
        OUTPUT "${source}" "${header}" "${metadata}" ${report} ${parameters}
        ARGUMENTS compile "${model}" -o "${dir}" --quiet ${arguments} ${arg_OPTIONS}
        DEPFILE "${dir}/${arg_NAME}.d"
        DEPENDS "${model}" ${arg_DEPENDS} ${probe}
        COMMENT "Compiling model ${arg_NAME}${shown}"
    )

    set(exclude "")
    if (arg_EXCLUDE_FROM_ALL)
        set(exclude EXCLUDE_FROM_ALL)
    endif ()
    add_library(${target} STATIC ${exclude} "${source}" "${metadata}" ${report} ${parameters})
    add_library(${PROJECT_NAME}::${target} ALIAS ${target})
    _aot_model_require_c99(${target})
    _aot_model_take_flags(${target} "${call}" "${arg_FLAGS_FROM}")
    if (probe)
        _aot_model_add_probe(${target})
        add_dependencies(${target} ${target}.probe)
    endif ()
    if (CMAKE_C_COMPILER_ID MATCHES "^(GNU|Clang)$" AND NOT TARGET zephyr_interface)  # Zephyr says which C library it links
        target_link_libraries(${target} PUBLIC -lm)  # `m` would be a target of this project that is called so
    endif ()
    get_property(runtime GLOBAL PROPERTY AOT_MODEL_INCLUDE_DIR)
    file(GLOB_RECURSE runtime_headers "${runtime}/*.h" "${runtime}/*.hpp")
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${dir}" "${runtime}" FILES "${header}" ${runtime_headers})

    _aot_model_link_backends(${target} ${arg_OFFLOAD})
    if (arg_COUNT_CODE)
        _aot_model_count_code(${target} "${call}" "${metadata}" "${arg_MAX_FLASH}")
    endif ()
    if (DEFINED arg_MAX_STACK)
        _aot_model_check_stack(${target} "${call}" "${metadata}" "${arg_MAX_STACK}" "${arg_STACK_ALLOWANCE}")
    endif ()
    if (DEFINED arg_MAX_CYCLES)
        _aot_model_check_cycles(${target} "${call}" "${metadata}" "${arg_MAX_CYCLES}" "${arg_MEMORY}" "${arg_CLOCK}")
    elseif (DEFINED arg_CLOCK)
        message(FATAL_ERROR "${call}: CLOCK is of MAX_CYCLES, which is missing")
    endif ()
    if (EXISTS "${model}")
        target_sources(${target} PRIVATE "${model}")
        set_source_files_properties("${model}" PROPERTIES HEADER_FILE_ONLY ON)
        source_group("Model" FILES "${model}")
    endif ()
    source_group("Generated" FILES "${source}" "${header}" "${metadata}" ${report} ${parameters})
    set_source_files_properties("${metadata}" ${report} ${parameters} PROPERTIES HEADER_FILE_ONLY ON)
    set_source_files_properties("${source}" PROPERTIES SKIP_LINTING ON)
    set_target_properties(${target} PROPERTIES
        AOT_MODEL_METADATA "${metadata}"
        AOT_MODEL_PARAMS "${parameters}"
        AOT_MODEL_TARGET "${arg_TARGET}"
    )
    if (DEFINED arg_METADATA)
        set(${arg_METADATA} "${metadata}" PARENT_SCOPE)
    endif ()
endfunction()

# Sets <result> to the folder for what is generated of a target, and of nothing else: nothing else is on its include path, and
# two targets may use the same file names. Where the words of the call may differ between configurations of one build
# folder, each has a folder of its own, so that none makes anew what another one has made. In Xcode all have the same
# sources; CMake before 3.28 crashes at a DEPFILE of a configuration where CMAKE_CROSS_CONFIGS builds several at once.
function(_aot_model_folder result target words)
    set(dir "${CMAKE_CURRENT_BINARY_DIR}/${target}.aot")
    get_property(separate GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
    if (CMAKE_GENERATOR STREQUAL "Xcode" OR (CMAKE_CROSS_CONFIGS AND CMAKE_VERSION VERSION_LESS 3.28))
        set(separate FALSE)
    endif ()
    if (separate AND words MATCHES "\\$<")
        string(APPEND dir "/$<CONFIG>")
    endif ()
    set(${result} "${dir}" PARENT_SCOPE)
endfunction()

# Sets <result> to the name of a target as a C identifier that a library can have.
function(_aot_model_name result call target)
    string(MAKE_C_IDENTIFIER "${target}" name)
    if (target MATCHES "^[0-9]")
        string(REGEX REPLACE "^_" "m" name "${name}")
    endif ()
    string(REGEX REPLACE "^_+$" "model" name "${name}")
    string(REGEX REPLACE "^_+" "m_" name "${name}")
    string(TOLOWER "${name}" lower)
    if (lower MATCHES "^aot_model(_|$)")
        set(name "m_${name}")
    endif ()
    get_property(reserved GLOBAL PROPERTY AOT_MODEL_RESERVED)
    string(REPLACE " " ";" reserved "${reserved}")
    if (lower IN_LIST reserved)
        message(STATUS "${call}: its header is ${name}_model.h, because programs include <${lower}.h>; NAME says otherwise")
        string(APPEND name "_model")
    endif ()
    set(${result} "${name}" PARENT_SCOPE)
endfunction()

# Sections and symbols of the object are counted before the archive is made; debug information says which layer code is of.
function(_aot_model_count_code target call metadata limit)
    if (NOT CMAKE_C_COMPILER_ID MATCHES "^(GNU|.*Clang)$" OR CMAKE_EXECUTABLE_FORMAT STREQUAL "MACHO" OR WIN32)
        message(FATAL_ERROR "${call}: COUNT_CODE needs GCC or Clang, and objects in the form ELF")
    endif ()
    target_compile_options(${target} PRIVATE -g)
    get_property(command GLOBAL PROPERTY AOT_MODEL_COMMAND)
    _aot_model_compiler(words)
    if (NOT limit STREQUAL "")
        list(APPEND words "--max-flash=${limit}")
    endif ()
    add_custom_command(TARGET ${target} PRE_LINK
        COMMAND ${command} size "${metadata}" "$<TARGET_OBJECTS:${target}>" ${words}
        COMMAND_EXPAND_LISTS
        VERBATIM
    )
endfunction()

# GCC writes what each function needs and whom it calls beside the object; the compiler sums it up before the archive is made.
function(_aot_model_check_stack target call metadata limit allowance)
    if (NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR CMAKE_C_COMPILER_VERSION VERSION_LESS 10)
        message(FATAL_ERROR "${call}: MAX_STACK needs GCC 10 or newer, which measures the stack (-fcallgraph-info)")
    endif ()
    target_compile_options(${target} PRIVATE -fcallgraph-info=su)
    get_property(command GLOBAL PROPERTY AOT_MODEL_COMMAND)
    _aot_model_compiler(words)  # functions of the C library are counted in the archives that its flags choose
    if (NOT allowance STREQUAL "")
        list(APPEND words "--stack-allowance=${allowance}")
    endif ()
    add_custom_command(TARGET ${target} PRE_LINK
        COMMAND ${command} stack "${metadata}" "$<TARGET_OBJECTS:${target}>" ${words} "--max-stack=${limit}"
        COMMAND_EXPAND_LISTS
        VERBATIM
    )
endfunction()

# The object is run in QEMU with a plug-in before the archive is made; debug information says which layer code is of.
function(_aot_model_check_cycles target call metadata limit memory clock)
    if (NOT CMAKE_C_COMPILER_ID MATCHES "^(GNU|Clang)$")
        message(FATAL_ERROR "${call}: MAX_CYCLES needs GCC or Clang for Cortex-M")
    endif ()
    target_compile_options(${target} PRIVATE -g)
    get_property(command GLOBAL PROPERTY AOT_MODEL_COMMAND)
    _aot_model_compiler(words)
    foreach (option IN ITEMS memory clock)
        if (NOT "${${option}}" STREQUAL "")
            list(APPEND words "--${option}=${${option}}")
        endif ()
    endforeach ()
    add_custom_command(TARGET ${target} PRE_LINK
        COMMAND ${command} cycles "${metadata}" "$<TARGET_OBJECTS:${target}>" ${words} "--max-cycles=${limit}"
        COMMAND_EXPAND_LISTS
        VERBATIM
    )
endfunction()

# Sets <result> to the option --compiler: the compiler, with the flags that choose a processor.
function(_aot_model_compiler result)
    get_directory_property(flags COMPILE_OPTIONS)
    string(REGEX MATCHALL "-m[A-Za-z0-9=+.-]+" flags "${CMAKE_C_FLAGS} ${flags}")
    list(JOIN flags " " flags)
    set(${result} "--compiler=\"${CMAKE_C_COMPILER}\" ${flags}" PARENT_SCOPE)
endfunction()

# Sets <result> to the absolute path of a model, or of what the last argument calls it, that exists or that the build makes.
function(_aot_model_find_model result call model depends)
    set(what "${ARGV4}")
    if (NOT what)
        set(what model)
    endif ()
    if (model MATCHES "\\$<")
        set(${result} "${model}" PARENT_SCOPE)
        return()
    endif ()
    foreach (base IN ITEMS "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}")
        cmake_path(ABSOLUTE_PATH model BASE_DIRECTORY "${base}" NORMALIZE OUTPUT_VARIABLE candidate)
        get_source_file_property(is_generated "${candidate}" GENERATED)
        if (is_generated OR EXISTS "${candidate}")
            set(${result} "${candidate}" PARENT_SCOPE)
            return()
        endif ()
    endforeach ()
    if (NOT depends)
        cmake_path(ABSOLUTE_PATH model NORMALIZE)
        string(TOLOWER "${what}" what)
        message(FATAL_ERROR "${call}: there is no ${what} ${model}")
    endif ()
    # Something in DEPENDS makes it, in a directory whose generated files are not known here.
    set(${result} "${candidate}" PARENT_SCOPE)
endfunction()

# Stops on what cmake_parse_arguments(... arg ...) in the caller did not understand.
macro(_aot_model_check_arguments call)
    if (DEFINED arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${call}: unknown argument: ${arg_UNPARSED_ARGUMENTS}")
    endif ()
    if (DEFINED arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${call}: no value after: ${arg_KEYWORDS_MISSING_VALUES}")
    endif ()
endmacro()

# A custom command that runs the compiler. The compiler writes the depfile: it names everything that was read, the
# model's external data too and, when it runs from a source tree, its own modules and templates.
function(_aot_model_add_command)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "DEPFILE;COMMENT" "OUTPUT;ARGUMENTS;DEPENDS")
    get_property(command GLOBAL PROPERTY AOT_MODEL_COMMAND)
    set(program "")
    foreach (word IN LISTS command)  # a compiler given as a file is an input like any other
        if (IS_ABSOLUTE "${word}" AND EXISTS "${word}" AND NOT IS_DIRECTORY "${word}" AND NOT word STREQUAL CMAKE_COMMAND)
            list(APPEND program "${word}")
        endif ()
    endforeach ()
    set(options "")
    if (arg_DEPFILE)
        list(APPEND arg_ARGUMENTS "--depfile=${arg_DEPFILE}")
        list(APPEND options DEPFILE "${arg_DEPFILE}")
    endif ()
    if (CMAKE_VERSION VERSION_GREATER_EQUAL 3.27)
        list(APPEND options DEPENDS_EXPLICIT_ONLY)  # do not wait for the libraries that the target links
    endif ()
    if (CMAKE_VERSION VERSION_GREATER_EQUAL 3.31)
        list(APPEND options CODEGEN)  # cmake --build . --target codegen
    endif ()
    add_custom_command(
        OUTPUT ${arg_OUTPUT}
        COMMAND ${command} ${arg_ARGUMENTS}
        DEPENDS ${arg_DEPENDS} ${program}
        COMMENT "${arg_COMMENT}"
        COMMAND_EXPAND_LISTS
        VERBATIM
        ${options}
    )
endfunction()
